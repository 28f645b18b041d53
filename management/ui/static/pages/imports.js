// The import from another broker: how far each queue is, what waits and why; its stop. `burrowctl import-from` begins one.
import {useState} from "../vendor/hooks.js";
import {request, usePage} from "../api.js";
import {number, visible} from "../format.js";
import {html} from "../html.js";
import {Confirm, Failure, Mark, Name, Table} from "../parts.js";
import {link} from "../route.js";

const SHOWN = 200;
const ORDER = ["failed", "waiting", "copying", "moving", "stopped", "done"];

function byUrgency(one, other) {
  return ORDER.indexOf(one.state) - ORDER.indexOf(other.state) || other.left - one.left || one.name.localeCompare(other.name);
}

function State({row}) {
  const isCalm = ["done", "moving", "copying"].includes(row.state);
  return html`${isCalm ? row.state : html`<${Mark} text=${row.state} title="not moving anything now" />`}
    ${row.reason ? html` <span class="hint">${visible(row.reason)}</span>` : null}
    ${row.maybe_twice ? html` <span class="hint">messages that are alike may be here twice</span>` : null}
    ${row.ttl_anew ? html` <span class="hint">the TTL of ${row.ttl_anew} began anew</span>` : null}`;
}

const COLUMNS = [
  {key: "vhost", title: "Virtual host", wide: true, cell: (row) => html`<${Name} value=${row.vhost} />`},
  {key: "name", title: "Queue", cell: (row) => html`<a href=${link(["queues", row.vhost, row.name])}><${Name} value=${row.name} /></a>`},
  {key: "state", title: "State", cell: (row) => html`<${State} row=${row} />`},
  {key: "there", title: "There at first", figure: true, wide: true, cell: (row) => number(row.there)},
  {key: "moved", title: "Moved", figure: true, wide: true, cell: (row) => number(row.moved)},
  {key: "here", title: "Here", figure: true, wide: true, cell: (row) => number(row.here)},
  {key: "left", title: "Left there", figure: true, cell: (row) => number(row.left)},
];

export function Import(props) {
  const found = usePage(props, "burrowmq/import", 2);
  const [isStopping, setStopping] = useState(false);
  if (found.isGone) {
    return html`<div class="empty">Nothing was imported since this node started. <code>burrowctl import-from</code> takes a running RabbitMQ over,
      and this page shows how far it is.</div>`;
  }
  const job = found.data;
  if (!job) return html`<${Failure} error=${found.error} />`;
  const rows = [...job.queues].sort(byUrgency);
  const done = rows.filter((row) => row.state === "done").length;
  return html`<${Failure} error=${found.error} />
    <p>${job.keep ? "Copy" : "Move"} from <${Name} value=${job.from} />: <strong>${visible(job.state)}</strong>, ${number(done)} of ${number(rows.length)} queues
      done, ${number(job.moved)} messages here, ${number(job.left)} left there${job.rate ? `, at most ${number(job.rate)} a second` : ""}.
      ${job.waits ? html` <${Mark} text="waits" title="nothing is moving" /> <span class="hint">${visible(job.waits)}</span>` : null}
      ${job.state === "running" ? html` <button type="button" class="danger" onClick=${() => setStopping(true)}>Stop…</button>` : null}</p>
    <${Table} caption="Queues of the import" columns=${COLUMNS} rows=${rows.slice(0, SHOWN)} keyOf=${(row) => `${row.vhost} ${row.name}`} query=${{}}
      empty="It has no queue to move." />
    ${rows.length > SHOWN ? html`<p class="hint">${number(rows.length - SHOWN)} more are further: these come first because they want a look.</p>` : null}
    ${isStopping ? html`<${Confirm} title="Stop the import" action="Stop" onDo=${() => request("DELETE", "burrowmq/import")} onClose=${() => {
      setStopping(false);
      found.refresh();
    }}><p>It ends between two batches. The same command goes on where it was.</p></${Confirm}>` : null}`;
}
