// Ctrl-K: pages, queues and exchanges by a part of their name.
import {useEffect, useRef, useState} from "./vendor/hooks.js";
import {request} from "./api.js";
import {Name} from "./parts.js";
import {html} from "./html.js";
import {link} from "./route.js";

const MOST = 10;

export function Search({pages, onClose}) {
  const dialog = useRef(null);
  const [text, setText] = useState("");
  const [found, setFound] = useState([]);
  const [at, setAt] = useState(0);
  useEffect(() => dialog.current.showModal(), []);
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => look(pages, text, stop.signal).then((rows) => {
      setFound(rows);
      setAt(0);
    }, () => {}), 120);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [text]);
  const go = (row) => {
    location.hash = row.to;
    dialog.current.close();
  };
  const pressed = (event) => {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (step && found.length) {
      event.preventDefault();
      setAt((at + step + found.length) % found.length);
    }
  };
  return html`<dialog class="search" ref=${dialog} onClose=${onClose} aria-label="Search">
    <form onSubmit=${(event) => { event.preventDefault(); if (found[at]) go(found[at]); }}>
      <input value=${text} onInput=${(event) => setText(event.target.value)} onKeyDown=${pressed} role="combobox"
        aria-expanded="true" aria-controls="found" aria-activedescendant=${found[at] ? `found-${at}` : undefined}
        placeholder="A page, a queue, an exchange" aria-label="Search" autocomplete="off" />
    </form>
    <ul id="found" role="listbox" aria-label="Found">${found.map((row, index) => html`<li key=${row.to} id=${`found-${index}`}
      role="option" aria-selected=${index === at} onClick=${() => go(row)}>
      <span class="kind">${row.kind}</span> <${Name} value=${row.name} empty="(default)" /> <span class="hint">${row.vhost ?? ""}</span></li>`)}</ul>
  </dialog>`;
}

async function look(pages, text, signal) {
  const wanted = text.trim().toLowerCase();
  const rows = pages.filter(([, title]) => title.toLowerCase().includes(wanted))
    .map(([name, title]) => ({kind: "page", name: title, to: link([name])}));
  if (!wanted) return rows;
  const query = new URLSearchParams({page: 1, page_size: MOST, name: text.trim(), columns: "name,vhost"});
  const [queues, exchanges] = await Promise.all(
    ["queues", "exchanges"].map((kind) => request("GET", `${kind}?${query}`, undefined, signal)),
  );
  for (const row of queues.items) rows.push({kind: "queue", ...row, to: link(["queues", row.vhost, row.name])});
  for (const row of exchanges.items) rows.push({kind: "exchange", ...row, to: link(["exchanges"], {vhost: row.vhost, name: row.name})});
  return rows.slice(0, MOST);
}
