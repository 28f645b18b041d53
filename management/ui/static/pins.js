// Queues that somebody wants to see side by side: kept for this tab, and in the address of the page that shows them.
import {useState} from "./vendor/hooks.js";
import {number} from "./format.js";
import {html} from "./html.js";
import {link} from "./route.js";

const KEY = "pinned";
// As many as a chart has lines.
export const MOST = 4;

export function readPins(text) {
  try {
    const found = JSON.parse(text ?? "[]");
    return Array.isArray(found) ? found.filter((pin) => Array.isArray(pin) && pin.length === 2).map((pin) => pin.map(String)).slice(0, MOST) : [];
  } catch {
    return [];
  }
}

export function compareLink(pins) {
  return link(["queues", "compare"], {pinned: JSON.stringify(pins)});
}

export function isSame([vhost, name], other) {
  return other[0] === vhost && other[1] === name;
}

export function keepPins(pins) {
  sessionStorage.setItem(KEY, JSON.stringify(pins));
}

// On a queue's page: pins it, and leads to where it stands beside the others.
export function Pin({vhost, name}) {
  const [pins, setPins] = useState(() => readPins(sessionStorage.getItem(KEY)));
  const own = [vhost, name];
  const others = pins.filter((pin) => !isSame(own, pin));
  const isPinned = others.length < pins.length;
  const toggle = () => {
    const next = isPinned ? others : [...pins, own];
    keepPins(next);
    setPins(next);
  };
  const isFull = !isPinned && pins.length >= MOST;
  return html`<span class="pin"><button type="button" aria-pressed=${isPinned} disabled=${isFull} onClick=${toggle}
      title=${isFull ? `${MOST} are pinned: take one away on the page that compares them` : "to compare it with others"}>${isPinned ? "Pinned" : "Pin"}</button>
    ${others.length ? html` <a href=${compareLink(isPinned || isFull ? pins : [...pins, own])}>Compare with ${number(others.length)} pinned</a>` : null}</span>`;
}
