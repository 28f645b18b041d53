// One queue: its figures, why it is as it is, who takes from it, what leads to it, and what can be done with it.
import {useRef, useState} from "../vendor/hooks.js";
import {report} from "../act.js";
import {request, usePage} from "../api.js";
import {Features, Placement, stateClass} from "../features.js";
import {many, number, rate, visible} from "../format.js";
import {OBJECT_AGES, QueuePast, rangeOf} from "../history.js";
import {html} from "../html.js";
import {Bytes, Confirm, ExchangeLink, Failure, Name, QueueLink, Table} from "../parts.js";
import {Pin} from "../pins.js";
import {link, path} from "../route.js";
import {Bind, BindingTable, Ways} from "./bindings.js";
import {CONSUMER_COLUMNS, ChannelLink, Held} from "./channels.js";
import {Get, Publish} from "./message.js";
import {Move} from "./move.js";
import {Settings} from "./reasons.js";

const SECONDS = 2;
const MUCH = 1000;
const CONSUMERS = CONSUMER_COLUMNS.filter((column) => !["queue", "priority"].includes(column.key)).map(({sort, ...column}) => column);

export function Queue(props) {
  const {route, setQuery} = props;
  const [, vhost, name] = route.parts;
  const own = path(vhost, name);
  const {data, error, refresh} = usePage(props, `burrowmq/pages/queue/${own}?history=${rangeOf(route.query, OBJECT_AGES)}`, SECONDS);
  const [asking, setAsking] = useState(null);
  const [done, setDone] = useState(null);
  const [ifUnused, ifEmpty] = [useRef(null), useRef(null)];
  if (!data) return html`<${Failure} error=${error} />`;
  const {queue, settings, warnings, bindings} = data;
  const mayMove = ["policymaker", "administrator"].some((tag) => props.user.tags.includes(tag));
  const stat = (key) => queue.message_stats?.[`${key}_details`]?.rate ?? 0;
  const ask = (action) => () => setAsking(action);
  // A stream keeps what it has: nothing is taken out of it, by anybody.
  const isStream = queue.type === "stream";
  const isMuch = (asking === "purge" ? queue.messages_ready : queue.messages) > MUCH;
  const act = async () => {
    const only = new URLSearchParams(asking === "delete" ? {"if-unused": ifUnused.current.checked, "if-empty": ifEmpty.current.checked} : {});
    await request("DELETE", `queues/${own}${asking === "purge" ? "/contents" : ""}?${only}`);
    if (asking === "purge") setDone(`Purged; it held ${many(queue.messages_ready, "ready messages")}.`);
  };
  return html`
    <${Failure} error=${error} />
    <p>${queue.type === "classic" ? "" : `${visible(queue.type)} `}<${Features} row=${queue} /> in virtual host <${Name} value=${queue.vhost} />, <span class=${stateClass(queue.state)}>${visible(queue.state)}</span> <${Pin} ...${{vhost, name}} /></p>
    <${Placement} row=${queue} />
    <section class="large" aria-label="Messages">
      <div><b>${number(queue.messages_ready)}</b> ready</div>
      <div><b>${number(queue.messages_unacknowledged)}</b> unacked</div>
      <div><b>${number(queue.messages)}</b> in all, <${Bytes} value=${queue.message_bytes} isAlone /></div>
    </section>
    <${QueuePast} history=${data.history} query=${route.query} setQuery=${setQuery} />
    <section class="figures" aria-label="Rates">
      ${[["publish", "in"], ["deliver", "delivered"], ["deliver_no_ack", "delivered without ack"], ["get", "got"], ["ack", "acked"], ["redeliver", "redelivered"]]
        .map(([key, title]) => html`<div key=${key}><b>${rate(stat(key))}</b> ${title}</div>`)}
      ${queue.consumers ? html`<div><b>${Math.round(100 * queue.consumer_capacity)} %</b> consumer capacity</div>` : null}
    </section>
    ${warnings.map((text) => html`<p key=${text} class="notice busy" role="note">${visible(text)}</p>`)}
    <h2>Why it is so</h2>
    <${Settings} ...${{vhost, settings}} defaults=${data.defaults} />
    <h2>Consumers</h2>
    <${Table} caption="Consumers" columns=${CONSUMERS} rows=${queue.consumer_details} keyOf=${(row) => row.channel_details.name + row.consumer_tag}
      query=${{}} empty=${queue.messages_ready ? html`Nobody consumes its ${many(queue.messages_ready, "messages")}.` : "Nobody consumes."} />
    ${queue.consumers > queue.consumer_details.length ? html`<p class="hint">${number(queue.consumer_details.length)} of ${number(queue.consumers)} are shown.</p>` : null}
    <${Holders} rows=${data.holders} unacked=${queue.messages_unacknowledged} />
    <h2>Bindings to it</h2>
    <${Ways} ...${{vhost, name, bindings}} count=${data.binding_count} hops=${data.dead_letters} />
    <${BindingTable} caption="Bindings to it" side="source" vhost=${vhost} bindings=${bindings} count=${data.binding_count} onDone=${refresh} />
    <${Bind} vhost=${vhost} to=${{kind: "queue", name}} onDone=${refresh} />
    <${DeadLetters} vhost=${vhost} hops=${data.dead_letters} />
    <section class="actions">
      <${Publish} vhost=${vhost} exchange="" routingKey=${name} onDone=${refresh} />
      ${isStream ? null : html`<${Get} vhost=${vhost} name=${name} ready=${queue.messages_ready} onDone=${refresh} />`}
    </section>
    ${mayMove && !isStream ? html`<${Move} vhost=${vhost} name=${name} onDone=${refresh} />` : null}
    ${done ? html`<p class="notice good" role="status">${done}</p>` : null}
    <p class="buttons">${isStream ? null : html`<button type="button" onClick=${ask("purge")}>Purge…</button>`}
      <button type="button" class="danger" onClick=${ask("delete")}>Delete…</button></p>
    ${asking ? html`<${Confirm} title=${asking === "purge" ? "Purge" : "Delete"} action=${asking === "purge" ? "Purge" : "Delete"} word=${isMuch ? name : null}
      onDo=${act} onClose=${(isDone) => {
        const was = asking;
        setAsking(null);
        if (isDone && was === "delete") {
          report(html`<${Name} value=${name} /> is deleted, with ${many(queue.messages, "messages")}.`);
          location.hash = link(["queues"]);
        }
        else if (isDone) refresh();
      }}>
      <p>${asking === "purge" ? html`${many(queue.messages_ready, "ready messages")} of <${Name} value=${name} /> will be gone${queue.messages_unacknowledged ? `; the ${number(queue.messages_unacknowledged)} unacked ones ${queue.type === "quorum" ? "go, too" : "stay"}` : ""}.`
        : html`<${Name} value=${name} />, ${many(queue.messages, "messages")}, ${many(data.binding_count, "bindings")} will be gone${queue.consumers ? `; ${many(queue.consumers, "consumers")} are cancelled` : ""}.`}</p>
      ${asking === "delete" ? html`<label class="check"><input type="checkbox" ref=${ifUnused} /> Only if nobody consumes it</label>
        <label class="check"><input type="checkbox" ref=${ifEmpty} /> Only if nothing is ready in it</label>` : null}
    </${Confirm}>` : null}`;
}

// The messages that wait for an ack: with whom, and since when.
function Holders({rows, unacked}) {
  if (!unacked) return null;
  const columns = [
    {key: "channel", title: "Held by", cell: (row) => html`<${ChannelLink} name=${row.channel}>${row.user_provided_name ? html`<${Name} value=${row.user_provided_name} />` : row.channel.split(" -> ")[0]} (${row.number})</${ChannelLink}>`},
    {key: "user", title: "User", wide: true, cell: (row) => visible(row.user)},
    {key: "tag", title: "Consumer", wide: true, cell: (row) => html`<${Name} value=${row.consumer_tag} empty="basic.get" />`},
    {key: "count", title: "Unacked", figure: true, cell: (row) => number(row.count)},
    {key: "since", title: "Oldest", cell: (row) => html`<${Held} seconds=${row.at_least_s} />`},
  ];
  return html`<h2>Who holds unacked messages</h2>
    <${Table} caption="Who holds unacked messages" columns=${columns} rows=${rows} keyOf=${(row) => row.channel} query=${{}} empty="Connections of other users, which this user may not see." />`;
}

function DeadLetters({vhost, hops}) {
  if (!hops.length) return null;
  return html`<h2>The way of dead letters</h2><ol class="path">${hops.map((hop) => html`<li key=${hop.queue}>
    <${QueueLink} vhost=${vhost} name=${hop.queue} /> <span class="arrow" aria-label="to">→</span> ${hop.exists ? html`<${ExchangeLink} vhost=${vhost} name=${hop.exchange} />` : html`<s><${Name} value=${hop.exchange} /></s> does not exist: they are dropped`}
    ${hop.exists ? html` <span class="hint">${hop.routing_key === null ? "by each message's own key" : html`by key <code>${visible(hop.routing_key)}</code>`}</span> <span class="arrow" aria-label="to">→</span> ${targets(vhost, hop)}` : null}</li>`)}</ol>`;
}

function targets(vhost, hop) {
  if (!hop.targets.length) {
    if (hop.is_certain) return html`<strong>no queue: they are dropped</strong>`;
    return hop.exchange ? html`<strong>no queue is bound to it: they are dropped</strong>` : "the queue that has the key as its name";
  }
  return html`${hop.is_certain ? "" : html`<span class="hint">one of</span> `}${hop.targets.map((row, at) => html`${at ? ", " : ""}<${QueueLink} key=${row.name} vhost=${vhost} name=${row.name} />${row.is_back
    ? html` <span class="hint">(in a circle: what expired there before is dropped)</span>` : null}`)}${hop.is_cut ? " and more" : ""}`;
}
