// All queues: the server filters, sorts and pages; what is chosen here can be emptied or deleted.
import {useEffect, useRef, useState} from "../vendor/hooks.js";
import {request, usePage} from "../api.js";
import {Features, Members, stateClass} from "../features.js";
import {many, number, rateCell, visible} from "../format.js";
import {DEPTHS, useLines} from "../history.js";
import {html} from "../html.js";
import {Bytes, Confirm, Failure, Name, Pages, QueueLink, Spark, Table, useFirstPage} from "../parts.js";
import {MOST, compareLink} from "../pins.js";
import {link, path} from "../route.js";
import {Declare} from "./declare.js";
import {Filter} from "./filter.js";

const SECONDS = 5;
const MUCH = 1000;
const NAMED = 8;
const NEEDED = "name,vhost,type,messages,messages_ready,messages_unacknowledged";

export function Queues(props) {
  const {vhost, route: {query}, setQuery} = props;
  const [isMixed, setMixed] = useState(false);
  const shown = shownIn(query, isMixed);
  const asked = {page: query.page || 1, page_size: 100, columns: [NEEDED, ...shown.map((column) => column.needs).filter(Boolean)].join(","), name: query.name, use_regex: query.regex ? "true" : "",
    sort: query.sort, sort_reverse: query.desc ? "true" : ""};
  const kept = Object.entries(asked).filter(([, value]) => value);
  const found = usePage(props, `queues${vhost ? "/" + path(vhost) : ""}?${new URLSearchParams(kept)}`, SECONDS,
    shown.some((column) => column.key === "line") ? DEPTHS : "");
  const {data} = found;
  useFirstPage(found.error, props.route);
  const hasOthers = Boolean(data?.items.some((row) => row.type !== "classic"));
  useEffect(() => {
    if (hasOthers) setMixed(true);
  }, [hasOthers]);
  const lines = useLines(found.answer, keyOf);
  const [chosen, setChosen] = useState(new Map());
  const purgeable = [...chosen.values()].filter((row) => row.type !== "stream");
  const [asking, setAsking] = useState(null);
  const [done, setDone] = useState(null);
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
    <${Filter} value=${query.name} onFilter=${(name) => setQuery({...query, name, page: ""})}>
      <label class="check"><input type="checkbox" checked=${Boolean(query.regex)}
        onChange=${(event) => setQuery({...query, regex: event.target.checked ? 1 : "", page: ""})} /> Regular expression</label>
      <${Choose} ...${{query, setQuery, isMixed}} />
      ${chosen.size ? html`<span class="buttons">${number(chosen.size)} chosen:
        ${chosen.size > 1 && chosen.size <= MOST ? html`<a href=${compareLink([...chosen.values()].map((row) => [row.vhost, row.name]))}>Compare</a>` : null}
        ${purgeable.length ? html`<button type="button" onClick=${() => setAsking("purge")}>Purge</button>` : null}
        <button type="button" class="danger" onClick=${() => setAsking("delete")}>Delete</button></span>` : null}
    </${Filter}>
    ${done ? html`<p class="notice good" role="status">${done}</p>` : null}
    <${Failure} error=${found.error} />
    ${data ? html`<${Table} caption="Queues" rows=${data.items} keyOf=${keyOf} columns=${shown.map((column) => ({...column, cell: (row) => column.cell(row, lines)}))} ...${{query, setQuery, select}}
        empty=${query.name ? "No queue has such a name." : html`<${FirstQueue} user=${props.user} />`} />
      <${Pages} page=${data.page} pageCount=${data.page_count} filtered=${data.filtered_count} total=${data.total_count}
        noun="queues" ...${{query, setQuery}} />` : null}
    <${Declare} vhost=${vhost || "/"} onDone=${found.refresh} />
    ${asking ? html`<${Bulk} rows=${asking === "purge" ? purgeable : [...chosen.values()]} streams=${asking === "purge" ? chosen.size - purgeable.length : 0} action=${asking} onClose=${(words) => {
      setAsking(null);
      setDone(words);
      if (words) setChosen(new Map());
      found.refresh();
    }} />` : null}`;
}

function keyOf(row) {
  return `${row.vhost} ${row.name}`;
}

const stat = (row, name) => row.message_stats?.[`${name}_details`]?.rate ?? 0;
const out = (row) => ["deliver", "deliver_no_ack", "get", "get_no_ack"].reduce((sum, name) => sum + stat(row, name), 0);
const exact = (value) => html`<${Bytes} value=${value} />`;
const amount = (key, title, show = number, isKept = false) => ({key, title, needs: key, sort: key, figure: true, wide: true, isKept, cell: (row) => show(row[key])});
const flow = (name, title, isKept = false) => ({
  key: name, title, needs: "message_stats", sort: `message_stats.${name}_details.rate`, figure: true, wide: true, isKept, cell: (row) => rateCell(stat(row, name)),
});
// Those that are kept are shown unless others are chosen; the address says which (`columns`). Those of mixed queues are kept where not all are classic ones.
const COLUMNS = [
  {key: "vhost", title: "Virtual host", sort: "vhost", wide: true, isKept: true, cell: (row) => visible(row.vhost)},
  {key: "name", title: "Name", sort: "name", isKept: true, isFixed: true, cell: (row) => html`<${QueueLink} ...${row} />`},
  {key: "features", title: "Features", needs: "durable,auto_delete,exclusive,arguments,policy,effective_policy_definition", wide: true, isKept: true, cell: (row) => html`<${Features} row=${row} />`},
  {key: "type", title: "Type", sort: "type", wide: true, isOfMixed: true, cell: (row) => visible(row.type)},
  {key: "policy", title: "Policy", needs: "policy", sort: "policy", wide: true, cell: (row) => (row.policy ? html`<a href=${link(["policies"], {vhost: row.vhost, name: row.policy})}><${Name} value=${row.policy} /></a>` : "")},
  {key: "state", title: "State", needs: "state", sort: "state", wide: true, isKept: true, cell: (row) => html`<span class=${stateClass(row.state)}>${visible(row.state)}</span>`},
  {key: "leader", title: "Leader", needs: "leader", sort: "leader", wide: true, isOfMixed: true, cell: (row) => (row.members?.length ? visible(row.leader, "none") : "")},
  {key: "members", title: "Members online", needs: "members,online", wide: true, isOfMixed: true, cell: (row) => html`<${Members} row=${row} />`},
  {key: "ready", title: "Ready", sort: "messages_ready", figure: true, isKept: true, cell: (row) => number(row.messages_ready)},
  {key: "unacked", title: "Unacked", sort: "messages_unacknowledged", figure: true, isKept: true, cell: (row) => number(row.messages_unacknowledged)},
  {key: "total", title: "Total", sort: "messages", figure: true, wide: true, cell: (row) => number(row.messages)},
  {key: "line", title: "Depth", needs: "depths", wide: true, isKept: true, cell: (row, lines) => html`<${Spark} values=${lines.get(keyOf(row)) ?? []}
    label=${`Depth in the last hour, now ${number(row.messages)}`} />`},
  {...flow("publish", "In", true), key: "in"},
  {key: "out", title: "Out", needs: "message_stats", sort: "message_stats.deliver_get_details.rate", figure: true, wide: true, isKept: true, cell: (row) => rateCell(out(row))},
  flow("ack", "Ack"), flow("redeliver", "Redelivered"),
  amount("consumers", "Consumers", number, true), amount("message_bytes", "Bytes", exact), amount("messages_persistent", "Persistent"),
  amount("messages_ram", "In memory"), amount("memory", "Memory", exact),
];

const isUsual = (column, isMixed) => column.isKept || (isMixed && column.isOfMixed);

function shownIn(query, isMixed) {
  const chosen = query.columns?.split(",");
  return COLUMNS.filter((column) => column.isFixed || (chosen ? chosen.includes(column.key) : isUsual(column, isMixed)));
}

function Choose({query, setQuery, isMixed}) {
  const shown = shownIn(query, isMixed).map((column) => column.key);
  const usual = COLUMNS.filter((column) => isUsual(column, isMixed)).map((column) => column.key).join(",");
  const change = (key) => {
    const next = COLUMNS.map((column) => column.key).filter((each) => (each === key) !== shown.includes(each)).join(",");
    setQuery({...query, columns: next === usual ? "" : next});
  };
  return html`<details class="choose"><summary>Columns</summary><fieldset><legend class="unseen">Columns</legend>
    ${COLUMNS.filter((column) => !column.isFixed).map((column) => html`<label class="check" key=${column.key}><input type="checkbox" checked=${shown.includes(column.key)}
      onChange=${() => change(column.key)} /> ${column.title}</label>`)}</fieldset></details>`;
}

function Bulk({rows, streams, action, onClose}) {
  const messages = rows.reduce((sum, row) => sum + row.messages, 0);
  const ready = rows.reduce((sum, row) => sum + row.messages_ready, 0);
  const what = rows.length === 1 ? html`<${Name} value=${rows[0].name} />` : many(rows.length, "queues");
  const word = rows.length > 1 ? `${action} ${rows.length}` : messages > MUCH ? rows[0].name : null;
  const words = useRef(null);
  const act = async () => {
    const failures = [];
    for (const row of rows) {
      const where = `queues/${path(row.vhost, row.name)}${action === "purge" ? "/contents" : ""}`;
      await request("DELETE", where).catch((error) => failures.push({error, row}));
    }
    words.current = `${action === "purge" ? "Purged" : "Deleted"}: ${number(rows.length - failures.length)} of ${number(rows.length)}.`;
    if (!failures.length) return;
    const [{error, row}] = failures;
    throw Object.assign(error, {message: `${words.current} ${row.name}: ${error.message}`});
  };
  return html`<${Confirm} title=${action === "purge" ? "Purge" : "Delete"} word=${word} action=${action === "purge" ? "Purge" : "Delete"} onDo=${act} onClose=${() => onClose(words.current)}>
    <p>${action === "purge" ? html`${many(ready, "ready messages")} of ${what} will be gone.` : html`${what} and ${many(messages, "messages")} will be gone.`}
      ${streams ? ` ${many(streams, "streams")} among what is chosen ${streams === 1 ? "stays" : "stay"} as ${streams === 1 ? "it is" : "they are"}: a stream cannot be purged.` : ""}</p>
    ${rows.length > 1 ? html`<ul class="chosen">${rows.slice(0, NAMED).map((row) => html`<li key=${keyOf(row)}><${Name} value=${row.name} /> <span class="hint">${number(row.messages)}</span></li>`)}
      ${rows.length > NAMED ? html`<li class="hint">and ${number(rows.length - NAMED)} more</li>` : null}</ul>` : null}
  </${Confirm}>`;
}

function FirstQueue({user}) {
  const host = location.hostname;
  const seesAll = user.tags.some((tag) => ["monitoring", "administrator"].includes(tag));
  return html`<p>${seesAll ? "There is no queue yet." : "There is no queue in the virtual hosts that this user has a permission in."} One is made below, or by a client:</p>
<pre><code>import pika
connection = pika.BlockingConnection(pika.ConnectionParameters("${host}"))
channel = connection.channel()
channel.queue_declare("orders", durable=True)</code></pre>`;
}
