// What several pages are made of.
import {useEffect, useRef, useState} from "./vendor/hooks.js";
import {bytes, duration, many, moment, number, short, visible} from "./format.js";
import {html} from "./html.js";
import {link} from "./route.js";

export function Name({value, empty, length}) {
  const whole = visible(value, empty);
  const cut = value ? short(value, length) : whole;
  return html`<span class="name" title=${cut === whole ? undefined : whole}>${cut}</span>`;
}

export function Failure({error, help}) {
  if (!error) return null;
  const path = error.path ? html`<div class="hint">Asked for <code>api/${error.path}</code></div>` : null;
  // A status of 0 is an error that was found here, before anybody was asked.
  const text = error.status === undefined ? "The node gives no answer." : visible(error.message);
  return html`<div class="notice bad" role="alert"><strong>${error.status || ""} ${text}</strong>${path}
    ${help ?? advice(error)}</div>`;
}

function advice(error) {
  if (error.status === 401) return html`<div class="hint">This user has not the tag or the permission for it.</div>`;
  if (error.status === 404) return html`<div class="hint">It is gone, or was never there.</div>`;
  // Pages ask again; nobody does a change again.
  if (error.isChange) return html`<div class="hint">Whether it was done is not known.</div>`;
  if (error.status === undefined) return html`<div class="hint">Trying again by itself.</div>`;
  return null;
}

// columns: {key, title, cell(row), sort, figure, wide}. Wide ones open below the row where there is little room.
export function Table({caption, columns, rows, keyOf, query, setQuery, select, empty}) {
  const [open, setOpen] = useState(null);
  if (!rows.length) return html`<div class="empty">${empty ?? "There is nothing here."}</div>`;
  const hidden = columns.filter((column) => column.wide);
  return html`<table>
    <caption class="unseen">${caption}</caption>
    <thead><tr>
      ${select ? html`<th class="pick"><input type="checkbox" aria-label="All on this page"
        checked=${rows.every((row) => select.chosen.has(keyOf(row)))} onChange=${() => select.all(rows)} /></th>` : null}
      ${columns.map((column) => html`<${Head} key=${column.key} ...${{column, query, setQuery}} />`)}
      ${hidden.length ? html`<th class="more"><span class="unseen">More</span></th>` : null}
    </tr></thead>
    <tbody>${rows.map((row) => {
      const key = keyOf(row);
      return html`<tr key=${key}>
        ${select ? html`<td class="pick"><input type="checkbox" aria-label=${`Select ${key}`}
          checked=${select.chosen.has(key)} onChange=${() => select.one(row)} /></td>` : null}
        ${columns.map((column) => html`<td key=${column.key} class=${classes(column)}>${column.cell(row)}</td>`)}
        ${hidden.length ? html`<td class="more"><button type="button" aria-expanded=${open === key}
          onClick=${() => setOpen(open === key ? null : key)}><span aria-hidden="true">⋯</span><span class="unseen">More of ${key}</span></button></td>` : null}
      </tr>
      ${open === key ? html`<tr class="below"><td colspan="99"><dl>${hidden.map((column) => html`
        <dt>${column.title}</dt><dd>${column.cell(row)}</dd>`)}</dl></td></tr>` : null}`;
    })}</tbody></table>`;
}

function classes(column) {
  return [column.figure && "figure", column.wide && "wide"].filter(Boolean).join(" ");
}

function Head({column, query, setQuery}) {
  if (!column.sort) return html`<th scope="col" class=${classes(column)}>${column.title}</th>`;
  const isSorted = query.sort === column.sort;
  const isDown = query.desc === "1";
  const next = {...query, sort: column.sort, desc: isSorted ? (isDown ? "" : "1") : column.figure ? "1" : "", page: ""};
  return html`<th scope="col" class=${classes(column)}
    aria-sort=${isSorted ? (isDown ? "descending" : "ascending") : undefined}>
    <button type="button" class="sort" onClick=${() => setQuery(next)}>${column.title}
      <span aria-hidden="true">${isSorted ? (isDown ? " ↓" : " ↑") : ""}</span></button></th>`;
}

// The last page's rows are gone: the first one in its place, also for who goes back.
export function useFirstPage(error, {parts, query}) {
  useEffect(() => {
    if (error?.status === 400 && query.page > 1) location.replace(link(parts, {...query, page: ""}));
  }, [error]);
}

export function Pages({page, pageCount, filtered, total, noun, query, setQuery}) {
  const go = (to) => () => setQuery({...query, page: to > 1 ? to : ""});
  return html`<nav class="pages" aria-label="Pages">
    <span>${filtered === total ? many(total, noun) : `${number(filtered)} of ${many(total, noun)}`}</span>
    ${pageCount > 1 ? html`<button type="button" disabled=${page <= 1} onClick=${go(page - 1)}>Previous</button>
      <span>Page ${page} of ${pageCount}</span>
      <button type="button" disabled=${page >= pageCount} onClick=${go(page + 1)}>Next</button>` : null}
  </nav>`;
}

// Asks before something is lost; `word` has to be typed where that is much.
export function Confirm({title, children, word, action, onDo, onClose}) {
  const dialog = useRef(null);
  const [typed, setTyped] = useState("");
  const [state, setState] = useState({});
  useEffect(() => dialog.current.showModal(), []);
  const act = async (event) => {
    event.preventDefault();
    setState({isBusy: true});
    try {
      await onDo();
      onClose(true);
    } catch (error) {
      setState({error});
    }
  };
  return html`<dialog ref=${dialog} onClose=${() => onClose(false)} aria-labelledby="confirm-title">
    <form onSubmit=${act}>
      <h2 id="confirm-title">${title}</h2>
      ${children}
      ${word ? html`<label>Type <code>${visible(word)}</code> to go on
        <input value=${typed} onInput=${(event) => setTyped(event.target.value)} autocomplete="off" /></label>` : null}
      <${Failure} error=${state.error} />
      <div class="buttons"><button type="button" onClick=${() => dialog.current.close()}>Cancel</button>
        <button type="submit" class="danger" disabled=${state.isBusy || (word && typed !== word && typed !== visible(word))}>${action}</button></div>
    </form></dialog>`;
}

export function QueueLink({vhost, name}) {
  return html`<a href=${link(["queues", vhost, name])}><${Name} value=${name} empty="(empty)" /></a>`;
}

export function ExchangeLink({vhost, name}) {
  return html`<a href=${link(["exchanges", vhost, name || "amq.default"])}><${Name} value=${name} empty="(default)" /></a>`;
}

// A moment, as how long ago it was; the exact one is said on hover and focus.
export function Ago({ms}) {
  const at = new Date(ms);
  return html`<time datetime=${at.toISOString()} title=${moment(at)} tabindex="0">${duration(Math.max(0, Date.now() - ms) / 1000)} ago</time>`;
}

// Octets as people read them; how many exactly is said on hover, and where they stand alone on focus too.
export function Bytes({value, isAlone}) {
  if (typeof value !== "number") return bytes(value);
  return html`<span class="exact" title=${`${number(value)} bytes`} tabindex=${isAlone ? 0 : undefined}>${bytes(value)}</span>`;
}

// For how long something has been so; since when is said on hover and focus.
export function Since({ms}) {
  const at = new Date(ms);
  return html`<time datetime=${at.toISOString()} title=${`since ${moment(at)}`} tabindex="0">for ${duration(Math.max(0, Date.now() - ms) / 1000)}</time>`;
}

export function Mark({text, title, quiet}) {
  return html`<abbr class=${quiet ? "mark quiet" : "mark"} title=${title} tabindex="0">${text}</abbr>`;
}

// A small line of what was, evenly spaced, the newest at its end; what is not known is left out.
export function Spark({values, label}) {
  const known = values.map((value, at) => [at, value]).filter(([, value]) => value !== null);
  if (known.length < 2) return html`<span class="hint">–</span>`;
  const high = Math.max(...known.map(([, value]) => value), 1);
  const points = known.map(([at, value]) => `${((at / (values.length - 1)) * 80).toFixed(1)},${(20 - (value / high) * 18).toFixed(1)}`).join(" ");
  return html`<svg class="spark" viewBox="0 0 80 22" role="img" aria-label=${label}><polyline points=${points} /></svg>`;
}
