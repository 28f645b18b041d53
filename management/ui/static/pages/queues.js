// All queues: the server filters, sorts and pages; what is chosen here can be emptied or deleted.
import {useEffect, useRef, useState} from "../vendor/hooks.js";
import {request, usePolled} from "../api.js";
import {Features} from "../features.js";
import {number, rate, visible} from "../format.js";
import {DEPTHS, useLines} from "../history.js";
import {html} from "../html.js";
import {Confirm, Failure, Name, Pages, QueueLink, Spark, Table} from "../parts.js";
import {path} from "../route.js";
import {Declare} from "./declare.js";

const SECONDS = 5;
const MUCH = 1000;
const SHOWN = "name,vhost,durable,auto_delete,exclusive,arguments,policy,effective_policy_definition,state,messages,"
  + "messages_ready,messages_unacknowledged,consumers,message_stats,depths";

export function Queues({vhost, route, isPaused, setQuery, setSeen}) {
  const {query} = route;
  const asked = {page: query.page || 1, page_size: 100, columns: SHOWN, name: query.name, use_regex: query.regex ? "true" : "",
    sort: query.sort, sort_reverse: query.desc ? "true" : ""};
  const kept = Object.entries(asked).filter(([, value]) => value);
  const found = usePolled(`queues${vhost ? "/" + path(vhost) : ""}?${new URLSearchParams(kept)}`, SECONDS, isPaused, DEPTHS);
  const last = useRef(null);
  if (found.data) last.current = found.data;
  const data = found.data ?? last.current;
  const lines = useLines(found.data, keyOf);
  useEffect(() => setSeen({at: found.at, isAway: found.isStale}), [found.at, found.isStale]);
  const [chosen, setChosen] = useState(new Map());
  const [asking, setAsking] = useState(null);
  const select = {
    chosen,
    one: (row) => setChosen((was) => {
      const next = new Map(was);
      if (!next.delete(keyOf(row))) next.set(keyOf(row), row);
      return next;
    }),
    all: (rows) => setChosen((was) => {
      const isAll = rows.every((row) => was.has(keyOf(row)));
      return new Map(isAll ? [] : rows.map((row) => [keyOf(row), row]));
    }),
  };
  return html`
    <form class="filter" role="search" onSubmit=${(event) => event.preventDefault()}>
      <label>Filter <input type="search" value=${query.name ?? ""} onInput=${later((name) => setQuery({...query, name, page: ""}))} /></label>
      <label class="check"><input type="checkbox" checked=${Boolean(query.regex)}
        onChange=${(event) => setQuery({...query, regex: event.target.checked ? 1 : "", page: ""})} /> Regular expression</label>
      ${chosen.size ? html`<span class="buttons">${number(chosen.size)} chosen:
        <button type="button" onClick=${() => setAsking("purge")}>Purge</button>
        <button type="button" class="danger" onClick=${() => setAsking("delete")}>Delete</button></span>` : null}
    </form>
    <${Failure} error=${found.error} />
    ${data ? html`<${Table} caption="Queues" rows=${data.items} keyOf=${keyOf} columns=${columns(lines)} ...${{query, setQuery, select}}
        empty=${query.name ? "No queue has such a name." : html`<${FirstQueue} />`} />
      <${Pages} page=${data.page} pageCount=${data.page_count} filtered=${data.filtered_count} total=${data.total_count}
        noun="queues" ...${{query, setQuery}} />` : null}
    <${Declare} vhost=${vhost || "/"} onDone=${found.refresh} />
    ${asking ? html`<${Bulk} rows=${[...chosen.values()]} action=${asking} onClose=${(isDone) => {
      setAsking(null);
      if (isDone) {
        setChosen(new Map());
        found.refresh();
      }
    }} />` : null}`;
}

function keyOf(row) {
  return `${row.vhost} ${row.name}`;
}

function columns(lines) {
  const stat = (row, name) => row.message_stats?.[`${name}_details`]?.rate ?? 0;
  return [
    {key: "vhost", title: "Virtual host", sort: "vhost", wide: true, cell: (row) => visible(row.vhost)},
    {key: "name", title: "Name", sort: "name", cell: (row) => html`<${QueueLink} ...${row} />`},
    {key: "features", title: "Features", wide: true, cell: (row) => html`<${Features} row=${row} />`},
    {key: "state", title: "State", wide: true, cell: (row) => row.state},
    {key: "ready", title: "Ready", sort: "messages_ready", figure: true, cell: (row) => number(row.messages_ready)},
    {key: "unacked", title: "Unacked", sort: "messages_unacknowledged", figure: true, cell: (row) => number(row.messages_unacknowledged)},
    {key: "line", title: "Depth", wide: true, cell: (row) => html`<${Spark} values=${lines.get(keyOf(row)) ?? []}
      label=${`Depth in the last hour, now ${number(row.messages)}`} />`},
    {key: "in", title: "In", sort: "message_stats.publish_details.rate", figure: true, wide: true, cell: (row) => rate(stat(row, "publish"))},
    {key: "out", title: "Out", figure: true, wide: true,
      cell: (row) => rate(["deliver", "deliver_no_ack", "get", "get_no_ack"].reduce((sum, name) => sum + stat(row, name), 0))},
    {key: "consumers", title: "Consumers", sort: "consumers", figure: true, wide: true, cell: (row) => number(row.consumers)},
  ];
}

let waiting = 0;
function later(act) {
  return (event) => {
    const {value} = event.target;
    clearTimeout(waiting);
    waiting = setTimeout(() => act(value), 250);
  };
}

function Bulk({rows, action, onClose}) {
  const messages = rows.reduce((sum, row) => sum + row.messages, 0);
  const ready = rows.reduce((sum, row) => sum + row.messages_ready, 0);
  const what = rows.length === 1 ? html`<${Name} value=${rows[0].name} />` : `${number(rows.length)} queues`;
  const word = rows.length > 1 ? `${action} ${rows.length}` : messages > MUCH ? rows[0].name : null;
  const act = async () => {
    for (const row of rows) {
      await request("DELETE", `queues/${path(row.vhost, row.name)}${action === "purge" ? "/contents" : ""}`);
    }
  };
  return html`<${Confirm} title=${action === "purge" ? "Purge" : "Delete"} word=${word} action=${action === "purge" ? "Purge" : "Delete"} onDo=${act} onClose=${onClose}>
    <p>${action === "purge" ? html`${number(ready)} ready messages of ${what} will be gone.` : html`${what} and ${number(messages)} messages will be gone.`}</p>
  </${Confirm}>`;
}

function FirstQueue() {
  const host = location.hostname;
  return html`<p>There is no queue yet. One is made below, or by a client:</p>
<pre><code>import pika
connection = pika.BlockingConnection(pika.ConnectionParameters("${host}"))
channel = connection.channel()
channel.queue_declare("orders", durable=True)</code></pre>`;
}
