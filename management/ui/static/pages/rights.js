// Permissions: user × virtual host × configure, write, read; routing keys of topic exchanges; limits.
import {useState} from "../vendor/hooks.js";
import {Outcome, fields, useAct} from "../act.js";
import {request} from "../api.js";
import {visible} from "../format.js";
import {html} from "../html.js";
import {Confirm, Name, Table} from "../parts.js";
import {link, path} from "../route.js";
import {List} from "./lists.js";

const RIGHTS = [
  ["configure", "may declare and delete"], ["write", "may publish to, and bind"], ["read", "may consume and get from, and bind to"],
];
const SHOWN = 200;

// A pattern as it is, and in words where everybody uses it.
export function Right({pattern}) {
  if (pattern === ".*") return html`<span class="right all" title="everything: .*">all</span>`;
  if (pattern === "" || pattern === "^$") return html`<span class="right none" title=${`nothing: ${pattern || "empty"}`}>none</span>`;
  return html`<code>${visible(pattern)}</code>`;
}

export function UserLink({name}) {
  return html`<a href=${link(["admin", "users", name])}><${Name} value=${name} /></a>`;
}

export function VhostLink({name}) {
  return html`<a href=${link(["admin", "vhosts", name])}><${Name} value=${name} /></a>`;
}

export function Permissions(props) {
  const columns = [
    {key: "user", title: "User", sort: "user", cell: (row) => html`<${UserLink} name=${row.user} />`},
    {key: "vhost", title: "Virtual host", sort: "vhost", cell: (row) => html`<${VhostLink} name=${row.vhost} />`},
    ...RIGHTS.map(([key]) => ({key, title: key[0].toUpperCase() + key.slice(1), wide: true, cell: (row) => html`<${Right} pattern=${row[key]} />`})),
    {key: "topics", title: "Topic permissions", figure: true, wide: true, cell: (row) => row.topics || ""},
  ];
  return html`<${List} kind="burrowmq/pages/permissions" noun="permissions" ...${props} columns=${columns} keyOf=${(row) => `${row.vhost} ${row.user}`}
    empty="Nobody may enter a virtual host." />`;
}

// Either one user's rights by virtual host, or one virtual host's by user: `other` is which of the two the rows differ in.
export function Matrix({rows, other, names, user, vhost, onDone}) {
  const [state, act] = useAct(onDone);
  const [edited, setEdited] = useState(null);
  const [leaving, setLeaving] = useState(null);
  const where = (name) => (other === "vhost" ? path(name, user) : path(vhost, name));
  const title = other === "vhost" ? "Virtual host" : "User";
  const Link = other === "vhost" ? VhostLink : UserLink;
  const save = (event) => {
    const {name, ...rights} = fields(event);
    act(() => request("PUT", `permissions/${where(name)}`, rights), `${visible(name)}: saved.`).then((isDone) => isDone && setEdited(null));
  };
  const free = names.filter((name) => !rows.some((row) => row[other] === name));
  const columns = [
    {key: "name", title, cell: (row) => html`<${Link} name=${row[other]} />`},
    ...RIGHTS.map(([key]) => ({key, title: key[0].toUpperCase() + key.slice(1), cell: (row) => html`<${Right} pattern=${row[key]} />`})),
    {key: "do", title: "", wide: true, cell: (row) => html`<button type="button" onClick=${() => setEdited(row)}>Change</button>
      <button type="button" class="danger" onClick=${() => setLeaving(row)}>Take away…</button>`},
  ];
  return html`<${Table} caption="Permissions" columns=${columns} rows=${rows.slice(0, SHOWN)} keyOf=${(row) => row[other]} query=${{}} empty="None." />
    ${rows.length > SHOWN ? html`<p class="hint">The first ${SHOWN} of ${rows.length} are shown.</p>` : null}
    <form key=${edited?.[other]} class="filter" onSubmit=${save}>
      <label>${title} <input name="name" required list=${`free-${other}`} defaultValue=${edited?.[other]} readOnly=${Boolean(edited)} /></label>
      <datalist id=${`free-${other}`}>${free.slice(0, SHOWN).map((name) => html`<option key=${name} value=${name} />`)}</datalist>
      ${RIGHTS.map(([key, words]) => html`<label key=${key} title=${words}>${key} <input name=${key} size="8" defaultValue=${edited?.[key] ?? ".*"} /></label>`)}
      <button type="submit">${edited ? "Save" : "Permit"}</button>${edited ? html`<button type="button" onClick=${() => setEdited(null)}>Cancel</button>` : null}
    </form>
    <p class="hint">Regular expressions of names: <code>.*</code> is everything, empty is nothing. Configure: ${RIGHTS[0][1]}; write: ${RIGHTS[1][1]}; read: ${RIGHTS[2][1]}.</p>
    <${Outcome} state=${state} />
    ${leaving ? html`<${TakeAway} path=${`permissions/${where(leaving[other])}`} onClose=${() => setLeaving(null)} onDone=${onDone}>
      <${Name} value=${leaving.user} /> will not be able to enter <${Name} value=${leaving.vhost} />; connections that are open stay until they end.</${TakeAway}>` : null}`;
}

function TakeAway({path: where, children, onClose, onDone}) {
  return html`<${Confirm} title="Take away" action="Take away" onDo=${() => request("DELETE", where)} onClose=${(isDone) => {
    onClose();
    if (isDone) onDone();
  }}><p>${children}</p></${Confirm}>`;
}

export function Topics({rows, user, vhost, names, onDone}) {
  const [state, act] = useAct(onDone);
  const [leaving, setLeaving] = useState(null);
  const add = (event) => {
    const form = fields(event);
    const where = user === undefined ? path(vhost, form.name) : path(form.name, user);
    act(() => request("PUT", `topic-permissions/${where}`, {exchange: form.exchange, write: form.write, read: form.read}), "Saved.");
  };
  const other = user === undefined ? "user" : "vhost";
  const columns = [
    {key: "name", title: other === "user" ? "User" : "Virtual host", cell: (row) => html`<${Name} value=${row[other]} />`},
    {key: "exchange", title: "Exchange", cell: (row) => html`<${Name} value=${row.exchange} empty="(default)" />`},
    {key: "write", title: "Write", cell: (row) => html`<${Right} pattern=${row.write} />`},
    {key: "read", title: "Read", cell: (row) => html`<${Right} pattern=${row.read} />`},
    {key: "do", title: "", wide: true, cell: (row) => html`<button type="button" class="danger"
      onClick=${() => setLeaving(row)}>Take away…</button>`},
  ];
  return html`<${Table} caption="Topic permissions" columns=${columns} rows=${rows.slice(0, SHOWN)} keyOf=${(row) => `${row.vhost} ${row.user} ${row.exchange}`} query=${{}}
      empty="None: every routing key that the permissions allow." />
    <details><summary>Add a topic permission</summary><form class="filter" onSubmit=${add}>
      <label>${other === "user" ? "User" : "Virtual host"} <input name="name" required list="topic-names" /></label>
      <datalist id="topic-names">${names.slice(0, SHOWN).map((name) => html`<option key=${name} value=${name} />`)}</datalist>
      <label>Exchange <input name="exchange" required defaultValue="amq.topic" /></label>
      <label>write <input name="write" size="8" defaultValue=".*" /></label><label>read <input name="read" size="8" defaultValue=".*" /></label>
      <button type="submit">Save</button></form></details><${Outcome} state=${state} />
    ${leaving ? html`<${TakeAway} path=${`topic-permissions/${path(leaving.vhost, leaving.user, leaving.exchange)}`} onClose=${() => setLeaving(null)} onDone=${onDone}>
      <${Name} value=${leaving.user} /> may then use every routing key with <${Name} value=${leaving.exchange} empty="(default)" />, as far as its permissions go.</${TakeAway}>` : null}`;
}

export function Limits({kinds, limits, where, onDone}) {
  const [state, act] = useAct(onDone);
  const set = (key) => (event) => {
    const {value} = fields(event);
    act(() => (value === "" ? request("DELETE", `${where}/${key}`) : request("PUT", `${where}/${key}`, {value: Number(value)})), value === "" ? "No limit." : "Saved.");
  };
  return html`<div class="filter">${kinds.map(([key, title]) => html`<form key=${`${key} ${limits[key]}`} class="one" onSubmit=${set(key)}>
      <label>${title} <input name="value" type="number" min="-1" placeholder="no limit" defaultValue=${limits[key]} /></label><button type="submit">Set</button></form>`)}</div>
    <p class="hint">Empty: no limit. 0: none at all.</p><${Outcome} state=${state} />`;
}
