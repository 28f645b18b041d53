// Queues side by side: the same figure of each in one row and one chart, and where their settings differ.
import {useEffect} from "../vendor/hooks.js";
import {usePage} from "../api.js";
import {bytes, number, rate, short, visible} from "../format.js";
import {OBJECT_AGES, PastChart, RangeChooser, rangeOf, slopes} from "../history.js";
import {html} from "../html.js";
import {Failure, Mark, Name, QueueLink, Table} from "../parts.js";
import {MOST, isSame, keepPins, readPins} from "../pins.js";
import {link} from "../route.js";
import {SHOW, TITLES} from "./reasons.js";

const SECONDS = 5;
const COLOURS = ["--publish", "--deliver", "--ack", "--redeliver"];
const CHARTS = [["Ready", "messages_ready", number], ["Unacked", "messages_unacknowledged", number], ["In", "publish", rate, slopes], ["Out", "deliver_get", rate, slopes]];
const stat = (key) => (queue) => rate(queue.message_stats?.[`${key}_details`]?.rate ?? 0);
const FIGURES = [
  ["Ready", (queue) => number(queue.messages_ready)], ["Unacked", (queue) => number(queue.messages_unacknowledged)], ["Bytes", (queue) => bytes(queue.message_bytes)],
  ["In", stat("publish")], ["Out", stat("deliver_get")], ["Acked", stat("ack")], ["Redelivered", stat("redeliver")],
  ["Consumers", (queue) => number(queue.consumers)], ["Memory", (queue) => bytes(queue.memory)],
];
const FACTS = [["Durable", (queue) => (queue.durable ? "yes" : "no")], ["Policy", (queue) => visible(queue.policy, "none")], ["Operator policy", (queue) => visible(queue.operator_policy, "none")]];

export function Compare(props) {
  const {route: {query}, setQuery} = props;
  const pins = readPins(query.pinned);
  const asked = new URLSearchParams([["history", rangeOf(query, OBJECT_AGES)], ...pins.map((pin) => ["queue", pin.map(encodeURIComponent).join("/")])]);
  const {data, error} = usePage(props, `burrowmq/pages/compare?${asked}`, SECONDS);
  useEffect(() => keepPins(pins), [query.pinned]);
  const leave = (row) => () => setQuery({...query, pinned: JSON.stringify(pins.filter((pin) => !isSame(pin, [row.vhost, row.name])))});
  if (!pins.length) {
    return html`<p class="empty">Nothing is pinned. "Pin" on a queue's page keeps it for this page, and up to ${MOST} queues that are chosen in the <a href=${link(["queues"])}>list</a> are compared at once.</p>`;
  }
  if (!data) return html`<${Failure} error=${error} />`;
  const rows = data.queues.filter((row) => pins.some((pin) => isSame(pin, [row.vhost, row.name])));
  const there = rows.filter((row) => row.queue);
  return html`<${Failure} error=${error} />
    <ul class="pinned">${rows.map((row, at) => html`<li key=${`${row.vhost} ${row.name}`}><span class=${`key key${COLOURS[at]}`}><${QueueLink} ...${row} /></span>
      <span class="hint">in <${Name} value=${row.vhost} length=${20} />${row.queue ? "" : ", which is not there, or not for this user"}</span>
      <button type="button" onClick=${leave(row)}>Unpin<span class="unseen"> ${visible(row.name)}</span></button></li>`)}</ul>
    ${there.length ? html`<${RangeChooser} ...${{query, setQuery}} ages=${OBJECT_AGES} />
      <section class="charts" aria-label="What was">${CHARTS.map((chart) => html`<${Beside} key=${chart[0]} ...${{chart, rows}} />`)}</section>
      <h2>Figures</h2><${Rows} caption="Figures" rows=${FIGURES.map(([title, show]) => ({title, values: rows.map((row) => (row.queue ? show(row.queue) : ""))}))} queues=${rows} />
      <h2>Settings</h2><${Rows} caption="Settings" rows=${settings(rows)} queues=${rows} isMarked />` : null}`;
}

// One figure of each, on one scale. The colours are those of the list above, whichever of the queues are there.
function Beside({chart: [title, column, show, make], rows}) {
  const there = rows.map((row, at) => [row, at]).filter(([row]) => row.queue);
  const columns = Object.fromEntries(there.map(([row, at]) => [at, row.history.columns[column]]));
  const lines = there.map(([row, at]) => [short(row.name, 24) || "(empty)", COLOURS[at], at, make]);
  return html`<${PastChart} key=${there.map(([, at]) => at).join()} ...${{title, show, lines}} history=${{...there[0][0].history, columns}} />`;
}

function settings(rows) {
  const keys = [...new Set(rows.flatMap((row) => (row.settings ?? []).map((each) => each.key)))];
  const facts = FACTS.map(([title, show]) => ({title, values: rows.map((row) => (row.queue ? show(row.queue) : ""))}));
  return [...facts, ...keys.map((key) => ({title: TITLES[key], values: rows.map((row) => {
    if (!row.queue) return "";
    const found = row.settings.find((each) => each.key === key);
    if (!found) return "not set";
    return SHOW[key] && typeof found.value === "number" ? SHOW[key](found.value) : visible(found.value);
  })}))];
}

function Rows({caption, rows, queues, isMarked}) {
  const differs = (row) => new Set(row.values.filter((value, at) => queues[at].queue)).size > 1;
  const columns = [
    {key: "what", title: "What", cell: (row) => html`${row.title} ${isMarked && differs(row) ? html`<${Mark} text="differs" title="not the same for all of them" />` : null}`},
    ...queues.map((queue, at) => ({key: String(at), title: html`<${Name} value=${queue.name} length=${20} />`, figure: true, wide: at > 1, cell: (row) => row.values[at]})),
  ];
  return html`<${Table} ...${{caption, columns, rows}} keyOf=${(row) => row.title} query=${{}} />`;
}
