// Is anything wrong, since when, what to do about it; then rates, depth and resources; then the queues that stand out.
import {usePage} from "../api.js";
import {bytes, duration, many, moment, noun, number, rate, visible} from "../format.js";
import {html} from "../html.js";
import {PastChart, RangeChooser, rangeOf, slopes} from "../history.js";
import {Failure, QueueLink} from "../parts.js";
import {link} from "../route.js";

const SECONDS = 5;
const TITLES = {memory: "Memory alarm", disk: "Disk alarm", store: "The store cannot write", queue: "Queues blocked", damage: "Damage on the disk", cluster: "Cluster out of reach"};
const REMEDY = {
  memory: (row) => html`The process holds ${bytes(row.value)} of at most ${bytes(row.limit)}: publishers are blocked. Let consumers
    catch up, look at the deepest queues below, or raise <code>vm_memory_high_watermark</code>.`,
  disk: (row) => html`${bytes(row.value)} are free, at least ${bytes(row.limit)} have to be: publishers are blocked. Make room on the
    data directory's disk, purge what nobody needs, or lower <code>disk_free_limit</code>.`,
  store: () => html`The disk took nothing more, or a sync failed: publishers are blocked until it does. Make room, look at the disk, and
    at the <a href="#/node/log?level=error">log</a> for what it said.`,
  queue: (row) => html`The disk refuses the files of ${many(row.value, "queues")}. All others go on; these are tried again
    until it does not: ${visible(row.cause)}`,
  damage: (row) => html`${visible(row.cause)}. Look at the disk; <code>GET /api/burrowmq/quarantine</code> lists the messages, which can be
    put back or dropped.`,
  cluster: () => html`Quorum queues take and give nothing until a server of <code>cluster.urls</code> answers; all else goes on.
    <code>burrowctl cluster_status</code> says which of them are up.`,
};
const RATES = [["publish", "--publish", "publish", slopes], ["deliver", "--deliver", "deliver_get", slopes], ["ack", "--ack", "ack", slopes],
  ["redeliver", "--redeliver", "redeliver", slopes]];
const LENGTHS = [["ready", "--ready", "messages_ready"], ["unacked", "--unacked", "messages_unacknowledged"]];
const TOPS = [
  ["deepest", "Deepest", number, "No queue holds a message."],
  ["growing", "Growing fastest", rate, "No queue grows."],
  ["unconsumed", "Waiting, without consumers", number, "Every queue with messages has a consumer."],
  ["redelivered", "Most redelivered", rate, "Nothing is redelivered."],
];

export function Overview(props) {
  const {vhost, route, setQuery} = props;
  const asked = new URLSearchParams({history: rangeOf(route.query), ...(vhost ? {vhost} : {})});
  const {data, error} = usePage(props, `burrowmq/pages/overview?${asked}`, SECONDS);
  if (!data) return html`<${Failure} error=${error} />`;
  const {overview, alarms, top, resources, history} = data;
  return html`
    <section aria-label="State">${alarms.length ? alarms.map((row) => html`<div key=${row.resource} class="notice bad" role="alert">
      <strong>${TITLES[row.resource]}</strong> ${row.since ? html`since ${moment(new Date(row.since * 1000))}, for ${duration(Date.now() / 1000 - row.since)}${row.cause ? html` (${row.resource === "cluster" ? "by now" : "it began with"}: ${visible(row.cause)})` : ""}. ` : ""}
      ${REMEDY[row.resource](row)} <a href="#/node">The node</a></div>`)
    : html`<p class="well"><span aria-hidden="true">✓</span> All well on ${overview.node ?? overview.cluster_name}: ${bytes(resources.mem_limit - resources.mem_used)} of memory
      and ${bytes(resources.disk_free - resources.disk_free_limit)} of disk to go until an alarm.</p>`}</section>
    <section class="figures" aria-label="Totals">
      ${["connections", "channels", "exchanges", "queues", "consumers"].filter((name) => name in overview.object_totals).map((name) => html`<div key=${name}>
        <b>${number(overview.object_totals[name])}</b> ${noun(overview.object_totals[name], name)}</div>`)}
      <div><b>${number(overview.queue_totals.messages_ready)}</b> ready</div>
      <div><b>${number(overview.queue_totals.messages_unacknowledged)}</b> unacked</div>
    </section>
    <${RangeChooser} query=${route.query} setQuery=${setQuery} />
    <section class="charts" aria-label="What was">
      <${PastChart} title="Rates" show=${rate} history=${history} lines=${RATES} />
      <${PastChart} title="Messages" show=${number} history=${history} lines=${LENGTHS} />
      <${PastChart} title="Used until an alarm" least=${1} show=${percent} history=${history} lines=${nearness(resources)} />
    </section>
    <section class="standing">${TOPS.map(([name, title, show, none]) => html`<div key=${name}>
      <h2>${title}</h2>
      ${top[name].length ? html`<table><caption class="unseen">${title}</caption><tbody>${top[name].map((row) => html`<tr key=${row.vhost + "/" + row.name}>
        <td><${QueueLink} ...${row} /></td><td class="hint">${row.vhost}</td><td class="figure">${show(row.value)}</td></tr>`)}</tbody></table>`
    : html`<p class="hint">${none}</p>`}</div>`)}</section>
    <${Churn} overview=${overview} vhost=${vhost} />`;
}

function Churn({overview, vhost}) {
  const churn = overview.churn_rates;
  const rows = Object.keys(churn).filter((name) => !name.endsWith("_details"));
  return html`<section class="columns"><div><h2>Churn${vhost ? " of the whole node" : ""}</h2><table><caption class="unseen">Churn</caption><tbody>${rows.map((name) => html`<tr key=${name}>
      <td>${name.replace("_", "s ")}</td><td class="figure">${number(churn[name])}</td>
      <td class="figure">${rate(churn[`${name}_details`].rate)}</td></tr>`)}</tbody></table></div>
    <div>${overview.listeners ? html`<h2>Listeners</h2><table><caption class="unseen">Listeners</caption><tbody>${overview.listeners.map((row) => html`<tr key=${row.protocol + row.ip_address + row.port}>
      <td>${row.protocol}</td><td>${row.ip_address}</td><td class="figure">${row.port}</td></tr>`)}</tbody></table>` : null}
      <p class="hint">${overview.cluster_name}, BurrowMQ ${overview.burrowmq_version}, speaks as RabbitMQ ${overview.rabbitmq_version}.</p>
      <h2>Definitions</h2><p><a href=${link(["overview", "definitions"])}>Export and import</a>: an import shows what it would change before it does.</p></div></section>`;
}

// How much of what sets an alarm off is used: at 100 % there is one.
function nearness({mem_limit, disk_free_limit}) {
  const known = (make) => (values) => values.map((value) => (value ? make(value) : null));  // 0: before the node began
  return [["memory", "--memory", "mem_used", known((used) => used / mem_limit)],
    ["disk", "--disk", "disk_free", known((free) => disk_free_limit / free)]];
}

function percent(share) {
  return typeof share === "number" ? `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %` : "–";
}
