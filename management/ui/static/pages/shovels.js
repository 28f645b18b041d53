// Shovels: what each moves from where to where, how far it is, and why one stands still; restart, delete, add.
import {useState} from "../vendor/hooks.js";
import {Outcome, fields, useAct} from "../act.js";
import {request, usePage} from "../api.js";
import {number, visible} from "../format.js";
import {html} from "../html.js";
import {Confirm, Failure, Mark, Name, Table} from "../parts.js";
import {path} from "../route.js";

const MODES = [
  ["on-confirm", "on-confirm: nothing is lost"], ["on-publish", "on-publish: what is on its way may be lost"], ["no-ack", "no-ack: whatever the source has sent may be lost"],
];

function place(row, end) {
  const uri = row[`${end}_uri`];
  const queue = row[`${end}_queue`];
  return html`${uri ? html`<${Name} value=${uri} />` : html`<span class="hint">not open,</span>`} ${queue !== undefined ? html`queue <${Name} value=${queue} />`
    : row[`${end}_exchange`] !== undefined ? html`exchange <${Name} value=${row[`${end}_exchange`]} empty="(default)" /> <${Name} value=${row[`${end}_exchange_key`] ?? ""} empty="" />`
      : html`<span class="hint">as the message has it</span>`}`;
}

function progress(row) {
  const parts = [`${number(row.forwarded)} moved`];
  if (row.pending) parts.push(`${number(row.pending)} unconfirmed`);
  if (row.refused) parts.push(`${number(row.refused)} refused`);
  if (typeof row.remaining === "number") parts.push(`${number(row.remaining)} to go`);
  return parts.join(", ");
}

function Add({vhosts, onDone}) {
  const [state, act] = useAct(onDone);
  const add = (event) => {
    const given = fields(event);
    const value = {
      "src-uri": given.source, "src-queue": given.queue, "dest-uri": given.destination, "ack-mode": given.mode,
      "dest-queue": given.target, "src-delete-after": given.until, "dest-add-forward-headers": Boolean(given.headers),
    };
    act(() => request("PUT", `parameters/shovel/${path(given.vhost, given.name)}`, {value}), `${visible(given.name)} is set.`);
  };
  return html`<details class="declare"><summary>Add a shovel</summary><form onSubmit=${add}><div class="fields">
      <label>Name <input name="name" required autocomplete="off" /></label>
      <label>Virtual host <select name="vhost">${vhosts.map((each) => html`<option key=${each} value=${each}>${visible(each)}</option>`)}</select></label>
      <label>Source <input name="source" required defaultValue="amqp://" autocomplete="off" /> <span class="hint">a URI; amqp:///name is a virtual host of this node, amqp:// its default one</span></label>
      <label>Source queue <input name="queue" required autocomplete="off" /></label>
      <label>Destination <input name="destination" required defaultValue="amqp://" autocomplete="off" /></label>
      <label>Destination queue <input name="target" required autocomplete="off" /></label>
      <label>Acknowledge <select name="mode">${MODES.map(([key, title]) => html`<option key=${key} value=${key}>${title}</option>`)}</select></label>
      <label>Until <select name="until"><option value="never">it is deleted</option><option value="queue-length">what is there now has been moved</option></select></label>
      <label class="check"><input type="checkbox" name="headers" /> Write into x-shovelled where a message has been</label>
    </div><p class="hint">Exchanges, TLS, limits and headers: as a parameter of the component shovel.</p>
    <button type="submit">Add</button></form></details><${Outcome} state=${state} />`;
}

export function Shovels(props) {
  const found = usePage(props, "shovels", 5);
  const vhosts = usePage(props, "vhosts?columns=name", 30);
  const [state, act] = useAct(found.refresh);
  const [leaving, setLeaving] = useState(null);
  const one = (row) => `shovels/vhost/${path(row.vhost, row.name)}`;
  const columns = [
    {key: "vhost", title: "Virtual host", cell: (row) => (row.type === "static" ? html`<span class="hint">static</span>` : html`<${Name} value=${row.vhost} />`)},
    {key: "name", title: "Name", cell: (row) => html`<${Name} value=${row.name} />`},
    {key: "state", title: "State", cell: (row) => html`${row.state === "running" ? "running" : html`<${Mark} text=${row.state} title="not moving anything now" />`} ${row.blocked_status === "blocked" ? html`<${Mark} text="blocked" title="the destination takes nothing now" />` : null}
      ${row.reason ? html`<span class="hint">${visible(row.reason)},</span>` : null} <span class="hint">since ${visible(row.timestamp)}</span>`},
    {key: "source", title: "From", wide: true, cell: (row) => place(row, "src")},
    {key: "destination", title: "To", wide: true, cell: (row) => place(row, "dest")},
    {key: "progress", title: "So far", wide: true, cell: (row) => progress(row)},
    {key: "do", title: "", wide: true, cell: (row) => (row.type === "static" ? null : html`<span class="together"><button type="button" onClick=${() => act(() => request("DELETE", `${one(row)}/restart`), `${visible(row.name)} begins anew.`)}>Restart</button>
      <button type="button" class="danger" onClick=${() => setLeaving(row)}>Delete…</button></span>`)},
  ];
  return html`<${Failure} error=${found.error} /><${Outcome} state=${state} />
    ${found.data ? html`<${Table} caption="Shovels" columns=${columns} rows=${found.data} keyOf=${(row) => `${row.vhost} ${row.name}`} query=${{}}
      empty="No shovel: one moves messages from a queue to another, here or elsewhere, for as long as it is there." />` : null}
    ${vhosts.data ? html`<${Add} vhosts=${vhosts.data.map((row) => row.name)} onDone=${found.refresh} />` : null}
    ${leaving !== null ? html`<${Confirm} title="Delete" action="Delete" onDo=${() => request("DELETE", one(leaving))} onClose=${() => {
      setLeaving(null);
      found.refresh();
    }}><p>The shovel <${Name} value=${leaving.name} /> will be gone. What it has not moved stays where it is.</p></${Confirm}>` : null}`;
}
