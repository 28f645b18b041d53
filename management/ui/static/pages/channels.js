// Channels and consumers: what they do, and what they hold.
import {usePage} from "../api.js";
import {duration, number, rate, rateCell, visible} from "../format.js";
import {OBJECT_AGES, ObjectPast, rangeOf} from "../history.js";
import {html} from "../html.js";
import {Failure, Mark, Name, QueueLink, Table} from "../parts.js";
import {link, path} from "../route.js";
import {Clients, Hindrances} from "./connections.js";

const SECONDS = 5;
const RATES = [["publish", "published"], ["confirm", "confirmed"], ["deliver", "delivered"], ["deliver_no_ack", "delivered without ack"], ["get", "got"], ["ack", "acked"], ["redeliver", "redelivered"], ["return_unroutable", "returned"]];

export function ChannelLink({name, children}) {
  return html`<a href=${link(["channels", name])}>${children ?? html`<${Name} value=${name} />`}</a>`;
}

export function peer({peer_host, peer_port}) {
  return visible(`${peer_host}:${peer_port}`);
}

// A channel as people know it: its connection's own name, or where it comes from, and its number.
function Called({user_provided_name, connection_details, number: at}) {
  return html`${user_provided_name ? html`<${Name} value=${user_provided_name} />` : peer(connection_details)} (${at})`;
}

export function ConnectionLink({name, title}) {
  return html`<a href=${link(["connections", name])}><${Name} value=${title || name} /></a>`;
}

// The sweep that ages are taken from comes once a second: "at least" is what is known.
export function Held({seconds}) {
  return html`<span title=${`for at least ${seconds} s`}>${seconds < 1 ? "just now" : `for ${duration(seconds)}`}</span>`;
}

function Oldest({row}) {
  const found = row.oldest_unacked;
  return found ? html`<${Held} seconds=${found.at_least_s} /> <span class="hint">of <${QueueLink} vhost=${found.vhost} name=${found.queue} /></span>` : "";
}

function Mode({row}) {
  if (row.confirm) return html`<${Mark} text="C" title="confirms: each publish is answered when it is safe" />`;
  return row.transactional ? html`<${Mark} text="T" title="transactions" />` : "";
}

const stat = (key) => (row) => rateCell(row.message_stats?.[`${key}_details`]?.rate ?? (row.message_stats ? undefined : 0));
const limit = (value) => (value ? number(value) : "no limit");

export const CHANNEL_COLUMNS = [
  {key: "name", title: "Channel", sort: "name", cell: (row) => html`<${ChannelLink} name=${row.name}><${Called} ...${row} /></${ChannelLink}>
    ${row.user_provided_name ? html`<div class="hint peer">${peer(row.connection_details)}</div>` : null}`},
  {key: "user", title: "User", sort: "user", wide: true, cell: (row) => visible(row.user)},
  {key: "vhost", title: "Virtual host", sort: "vhost", wide: true, cell: (row) => visible(row.vhost)},
  {key: "mode", title: "Mode", wide: true, cell: (row) => html`<${Mode} row=${row} />`},
  {key: "prefetch", title: "Prefetch", sort: "prefetch_count", figure: true, wide: true, cell: (row) => html`${limit(row.prefetch_count)}${row.global_prefetch_count ? html` <span class="hint">${number(row.global_prefetch_count)} together</span>` : null}`},
  {key: "unacked", title: "Unacked", sort: "messages_unacknowledged", figure: true, cell: (row) => number(row.messages_unacknowledged)},
  {key: "oldest", title: "Oldest held", sort: "oldest_unacked.at_least_s", wide: true, cell: (row) => html`<${Oldest} row=${row} />`},
  {key: "unconfirmed", title: "Unconfirmed", sort: "messages_unconfirmed", figure: true, wide: true, cell: (row) => number(row.messages_unconfirmed)},
  {key: "consumers", title: "Consumers", sort: "consumer_count", figure: true, wide: true, cell: (row) => number(row.consumer_count)},
  {key: "in", title: "In", sort: "message_stats.publish_details.rate", figure: true, wide: true, cell: stat("publish")},
  {key: "out", title: "Out", sort: "message_stats.deliver_get_details.rate", figure: true, wide: true, cell: stat("deliver_get")},
  {key: "ack", title: "Ack", sort: "message_stats.ack_details.rate", figure: true, wide: true, cell: stat("ack")},
];

function Tabs({at, vhost}) {
  return html`<nav class="tabs" aria-label="Channels and consumers">${["channels", "consumers"].map((name) => html`<a key=${name} href=${link([name], {vhost})}
    aria-current=${at === name ? "page" : undefined}>${name[0].toUpperCase() + name.slice(1)}</a>`)}</nav>`;
}

export function Channels(props) {
  return html`<${Tabs} at="channels" vhost=${props.vhost} /><${Clients} kind="channels" noun="channels" ...${props} columns=${CHANNEL_COLUMNS} keyOf=${(row) => row.name}
    empty="No channel is open." hint="name, user, virtual host" />`;
}

function Activity({row}) {
  if (row.activity_status === "waiting") return html`<span class="state">waits</span> <span class="hint">another is the single active one</span>`;
  return html`<span class="state good">${row.activity_status === "single_active" ? "the active one" : "active"}</span>`;
}

export const CONSUMER_COLUMNS = [
  {key: "tag", title: "Tag", sort: "name", cell: (row) => html`<${Name} value=${row.consumer_tag} /> ${row.exclusive ? html`<${Mark} text="Excl" title="exclusive: no other consumer on its queue" />` : null}${row.arguments?.["x-stream-offset"] === undefined ? null
    : html` <span class="hint">from ${visible(row.arguments["x-stream-offset"])}</span>`}`},
  {key: "queue", title: "Queue", sort: "queue.name", cell: (row) => html`<${QueueLink} ...${row.queue} />`},
  {key: "channel", title: "Channel", sort: "channel_details.name", wide: true, cell: (row) => html`<${ChannelLink} name=${row.channel_details.name}><${Called} user_provided_name=${row.user_provided_name} connection_details=${row.channel_details} number=${row.channel_details.number} /></${ChannelLink}>`},
  {key: "user", title: "User", sort: "channel_details.user", wide: true, cell: (row) => visible(row.channel_details.user)},
  {key: "activity", title: "State", sort: "activity_status", wide: true, cell: (row) => html`<${Activity} row=${row} />`},
  {key: "ack", title: "Ack", sort: "ack_required", wide: true, cell: (row) => (row.ack_required ? "by the client" : "at delivery")},
  {key: "prefetch", title: "Prefetch", sort: "prefetch_count", figure: true, wide: true, cell: (row) => limit(row.prefetch_count)},
  {key: "priority", title: "Priority", sort: "priority", figure: true, wide: true, cell: (row) => number(row.priority)},
  {key: "unacked", title: "Unacked", sort: "messages_unacknowledged", figure: true, cell: (row) => number(row.messages_unacknowledged)},
];

export function Consumers(props) {
  return html`<${Tabs} at="consumers" vhost=${props.vhost} /><${Clients} kind="consumers" noun="consumers" ...${props} columns=${CONSUMER_COLUMNS}
    keyOf=${(row) => `${row.vhost} ${row.queue.name} ${row.channel_details.name} ${row.consumer_tag}`} empty="Nobody consumes anything." hint="tag, queue, channel, user" />`;
}

export function Channel(props) {
  const {route, setQuery} = props;
  const [, name] = route.parts;
  const {data: shown, error, isGone} = usePage(props, `burrowmq/pages/channel/${path(name)}?history=${rangeOf(route.query, OBJECT_AGES)}`, SECONDS);
  if (!shown) return html`<${Failure} error=${error} />`;
  const {channel: row, consumers, unacked, hindrances} = shown;
  const held = [
    {key: "queue", title: "Queue", cell: (each) => html`<${QueueLink} vhost=${each.vhost} name=${each.queue} />`},
    {key: "tag", title: "By consumer", cell: (each) => html`<${Name} value=${each.consumer_tag} empty="basic.get" />`},
    {key: "count", title: "Unacked", figure: true, cell: (each) => number(each.count)},
    {key: "since", title: "Oldest held", wide: true, cell: (each) => html`<${Held} seconds=${each.at_least_s} /> <span class="hint">delivery tag ${number(each.delivery_tag)}</span>`},
  ];
  return html`${isGone ? html`<p class="notice busy" role="status">It has been closed; this is what was last known of it.</p>` : html`<${Failure} error=${error} />`}
    <p>Channel ${number(row.number)} of <${ConnectionLink} name=${row.connection_details.name} title=${row.user_provided_name} />, ${visible(row.user)} in virtual host <${Name} value=${row.vhost} /></p>
    <${Hindrances} rows=${hindrances} />
    <section class="figures" aria-label="Figures">
      <div><b>${number(row.messages_unacknowledged)}</b> unacked</div>
      <div><b>${limit(row.prefetch_count)}</b> prefetch of a consumer</div>
      ${row.global_prefetch_count ? html`<div><b>${number(row.global_prefetch_count)}</b> prefetch of all together</div>` : null}
      <div><b>${row.confirm ? number(row.messages_unconfirmed) : "off"}</b> ${row.confirm ? "unconfirmed" : "confirms"}</div>
      ${row.transactional ? html`<div><b>${number(row.messages_uncommitted)}</b> uncommitted</div><div><b>${number(row.acks_uncommitted)}</b> acks uncommitted</div>` : null}</section>
    <section class="figures" aria-label="Rates">${RATES.filter(([key]) => row.message_stats?.[key]).map(([key, title]) => html`<div key=${key}><b>${rate(row.message_stats[`${key}_details`]?.rate)}</b> ${title}, ${number(row.message_stats[key])} in all</div>`)}</section>
    <${ObjectPast} kind="channel" history=${shown.history} query=${route.query} setQuery=${setQuery} />
    ${row.confirm || !row.message_stats?.publish ? null : html`<p class="hint">It publishes without confirms: what the node refuses or loses, it does not learn.</p>`}
    <h2>What it holds</h2>
    <${Table} caption="Unacked messages" columns=${held} rows=${unacked} keyOf=${(each) => `${each.queue} ${each.consumer_tag}`} query=${{}} empty="Nothing waits for its ack." />
    <h2>Consumers</h2>
    <${Table} caption="Consumers" columns=${CONSUMER_COLUMNS.filter((column) => !["channel", "user"].includes(column.key)).map(({sort, ...column}) => column)} rows=${consumers}
      keyOf=${(each) => `${each.queue.name} ${each.consumer_tag}`} query=${{}} empty="It consumes nothing." />`;
}
