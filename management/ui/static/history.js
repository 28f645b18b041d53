// The past of figures as the node kept it: which range the address asks for, and charts of it.
import {useMemo, useRef} from "./vendor/hooks.js";
import {Chart} from "./chart.js";
import {bytes, number, rate} from "./format.js";
import {html} from "./html.js";

const AGES = {60: "1 min", 600: "10 min", 3600: "1 h", 28800: "8 h", 86400: "24 h"};
const USUAL = "600";

// Of objects other than the node and its virtual hosts an hour is kept.
export const OBJECT_AGES = ["60", "600", "3600"];

export function rangeOf(query, ages = Object.keys(AGES)) {
  return ages.includes(query.range) ? query.range : USUAL;
}

export function RangeChooser({query, setQuery, ages = Object.keys(AGES)}) {
  const chosen = rangeOf(query, ages);
  return html`<div class="buttons ranges" role="group" aria-label="Range of the charts">${ages.map((age) => html`<button type="button" key=${age}
    aria-pressed=${age === chosen} onClick=${() => setQuery({...query, range: age === USUAL ? "" : age})}>${AGES[age]}</button>`)}</div>`;
}

// What a counter grew by in a second, between each point and the one before; null where one of them is not known.
export function slopes(values, step) {
  return values.map((value, at) => (at && value !== null && values[at - 1] !== null ? (value - values[at - 1]) / step : null));
}

// `history` is what a page's answer has under that name; lines are [label, colour, column, what to make of its values].
export function PastChart({title, show, history, lines, least}) {
  const [times, series] = useMemo(() => {
    const {age, incr, from, columns} = history;
    const seconds = Array.from({length: age / incr + 1}, (_, at) => from / 1000 + at * incr);
    return [seconds, lines.map(([, , column, make]) => (make ?? ((values) => values))(columns[column], incr))];
  }, [history]);
  const latest = lines.map(([label, colour]) => [label, colour]);
  return html`<${Chart} ...${{title, show, times, series, least}} lines=${latest} />`;
}

// What a list of queues is asked for once a minute: an hour of each one's depth, in `depths`.
export const DEPTHS = "history=3600";

// The line of each row, by its key: what was asked for last. An answer that has lines has those of all rows: none stays
// of a queue that is gone, however long the page is open.
export function useLines(data, keyOf) {
  const lines = useRef(new Map());
  const drawn = (data?.items ?? []).filter((row) => row.depths);
  if (drawn.length) {
    lines.current = new Map(drawn.map((row) => [keyOf(row), row.depths.length > 1 ? row.depths : [row.depths[0], row.depths[0]]]));
  }
  return {get: (key) => lines.current.get(key)};
}

const LENGTHS = [["ready", "--ready", "messages_ready"], ["unacked", "--unacked", "messages_unacknowledged"]];
const RATES = [["in", "--publish", "publish", slopes], ["out", "--deliver", "deliver_get", slopes], ["ack", "--ack", "ack", slopes],
  ["redeliver", "--redeliver", "redeliver", slopes]];

// The two charts of a queue's page.
export function QueuePast({history, query, setQuery}) {
  return html`<${RangeChooser} ...${{query, setQuery}} ages=${OBJECT_AGES} />
    <section class="charts" aria-label="What was">
      <${PastChart} title="Messages" show=${number} history=${history} lines=${LENGTHS} />
      <${PastChart} title="Rates" show=${rate} history=${history} lines=${RATES} /></section>`;
}

const KINDS = {
  exchange: ["Messages", rate, [["in", "--publish", "publish_in", slopes], ["out", "--deliver", "publish_out", slopes]]],
  connection: ["Traffic", (value) => (value === null || value === undefined ? "–" : `${bytes(value)}/s`), [["from it", "--publish", "recv_oct", slopes], ["to it", "--deliver", "send_oct", slopes]]],
  channel: ["Messages", rate, [["in", "--publish", "publish", slopes], ["out", "--deliver", "deliver_get", slopes], ["ack", "--ack", "ack", slopes], ["redeliver", "--redeliver", "redeliver", slopes]]],
};

// The one chart of an exchange's, a connection's or a channel's page.
export function ObjectPast({kind, history, query, setQuery}) {
  const [title, show, lines] = KINDS[kind];
  return html`<${RangeChooser} ...${{query, setQuery}} ages=${OBJECT_AGES} />
    <section class="charts" aria-label="What was"><${PastChart} ...${{title, show, history, lines}} /></section>`;
}
