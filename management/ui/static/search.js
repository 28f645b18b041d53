// Ctrl-K: pages, and everything with a name, by letters of it in their order. The node searches; ten are shown.
import {useEffect, useRef, useState} from "./vendor/hooks.js";
import {request} from "./api.js";
import {Failure, Name} from "./parts.js";
import {html} from "./html.js";
import {link} from "./route.js";
import {PLACES} from "./views.js";

const MOST = 10;
const WAIT_MS = 120;
const ADDRESS = {
  "queue": (row) => link(["queues", row.vhost, row.name]),
  "exchange": (row) => link(["exchanges", row.vhost, row.name || "amq.default"]),
  "policy": (row) => link(["policies"], {vhost: row.vhost, name: row.name}),
  "operator policy": (row) => link(["policies"], {vhost: row.vhost, name: row.name}),
  "user": (row) => link(["admin", "users", row.name]),
  "vhost": (row) => link(["queues"], {vhost: row.name}),
};
const KINDS = {vhost: "virtual host"};

export function Search({vhost, onClose}) {
  const dialog = useRef(null);
  const [text, setText] = useState("");
  const [{rows, error}, setFound] = useState({rows: places("")});
  const [at, setAt] = useState(0);
  useEffect(() => dialog.current.showModal(), []);
  useEffect(() => {
    const stop = new AbortController();
    const shown = places(text);
    setAt(0);
    setFound(({rows: was}) => ({rows: text.trim() ? [...shown, ...was.filter((row) => row.kind !== "page")].slice(0, MOST) : shown}));
    const timer = setTimeout(() => look(text, vhost, stop.signal).then((found) => setFound({rows: [...shown, ...found].slice(0, MOST)}),
      (failed) => stop.signal.aborted || setFound({rows: shown, error: failed})), WAIT_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text]);
  useEffect(() => document.getElementById(`found-${at}`)?.scrollIntoView({block: "nearest"}), [at]);
  // The browser tells of the end later, when the next search may be open already.
  const hasLeft = useRef(false);
  const leave = () => {
    if (!hasLeft.current) onClose();
    hasLeft.current = true;
  };
  const go = (row) => {
    location.hash = row.to;
    dialog.current.close();
    leave();
  };
  const pressed = (event) => {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (step && rows.length) {
      event.preventDefault();
      setAt((at + step + rows.length) % rows.length);
    }
  };
  return html`<dialog class="search" ref=${dialog} onClose=${leave} aria-label="Search">
    <form onSubmit=${(event) => { event.preventDefault(); if (rows[at]) go(rows[at]); }}>
      <input value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${pressed} role="combobox"
        aria-expanded="true" aria-controls="found" aria-activedescendant=${rows[at] ? `found-${at}` : undefined}
        placeholder="A page, a queue, an exchange, a user, a policy" aria-label="Search" autocomplete="off" maxlength="200" />
    </form>
    <${Failure} error=${error} />
    <ul id="found" role="listbox" aria-label="Found">${rows.map((row, index) => html`<li key=${row.kind + row.to} id=${`found-${index}`}
      role="option" aria-selected=${index === at} onClick=${() => go(row)}>
      <span class="kind">${KINDS[row.kind] ?? row.kind}</span> <${Name} value=${row.name} empty="(default)" /> ${row.vhost
      ? html`<span class="hint">in <${Name} value=${row.vhost} length=${20} /></span>` : null}</li>`)}</ul>
    <p class="hint">${rows.length ? "↑ ↓ to choose, Enter to go, Esc to leave" : "Nothing has such a name."}</p>
  </dialog>`;
}

function places(text) {
  const wanted = text.trim().toLowerCase();
  return PLACES.filter(([title]) => fits(wanted, title.toLowerCase())).map(([title, parts, query]) => ({kind: "page", name: title, to: link(parts, query)}))
    .slice(0, wanted ? 3 : PLACES.length);
}

// The letters of a text at the beginning of words, in their order: `vh` and `virt` find "virtual hosts".
function fits(wanted, title) {
  return title.includes(wanted) || title.split(/\W+/).map((word) => word[0]).join("").startsWith(wanted);
}

async function look(text, vhost, signal) {
  if (!text.trim()) return [];
  const {found} = await request("GET", `burrowmq/search?${new URLSearchParams({query: text.trim(), vhost})}`, undefined, signal);
  return found.map((row) => ({...row, to: ADDRESS[row.kind](row)}));
}
