// One queue: its figures, why it is as it is, who takes from it, what leads to it, and what can be done with it.
import {useEffect, useRef, useState} from "../vendor/hooks.js";
import {request, usePolled} from "../api.js";
import {Features} from "../features.js";
import {bytes, milliseconds, number, rate, visible} from "../format.js";
import {OBJECT_AGES, QueuePast, rangeOf} from "../history.js";
import {html} from "../html.js";
import {Confirm, Failure, Name, Table} from "../parts.js";
import {link, path} from "../route.js";

const SECONDS = 2;
const MUCH = 1000;
const TITLES = {
  "message-ttl": "Message TTL", "expires": "Expires", "max-length": "Max length", "max-length-bytes": "Max length in bytes",
  "overflow": "Overflow", "dead-letter-exchange": "Dead-letter exchange", "dead-letter-routing-key": "Dead-letter routing key",
  "queue-mode": "Mode", "queue-version": "Version of its files", "max-priority": "Max priority",
  "single-active-consumer": "Single active consumer", "consumer-timeout": "Consumer timeout",
};
const SHOW = {"message-ttl": milliseconds, "expires": milliseconds, "consumer-timeout": milliseconds, "max-length": number, "max-length-bytes": bytes};
const MODES = [
  ["ack_requeue_true", "put them back (they are marked redelivered)"],
  ["ack_requeue_false", "take them away"],
  ["reject_requeue_true", "reject and put back"],
  ["reject_requeue_false", "reject: to the dead-letter exchange, if there is one"],
];

export function Queue({route, isPaused, setQuery, setSeen}) {
  const [, vhost, name] = route.parts;
  const own = path(vhost, name);
  const polled = usePolled(`burrowmq/pages/queue/${own}?history=${rangeOf(route.query, OBJECT_AGES)}`, SECONDS, isPaused);
  const {error, at, isStale, refresh} = polled;
  const kept = useRef(null);
  kept.current = polled.data ?? kept.current;
  const data = kept.current;
  const [asking, setAsking] = useState(null);
  useEffect(() => setSeen({at, isAway: isStale}), [at, isStale]);
  if (!data) return html`<${Failure} error=${error} />`;
  const {queue, settings, warnings, bindings} = data;
  const stat = (key) => queue.message_stats?.[`${key}_details`]?.rate ?? 0;
  const ask = (action) => () => setAsking(action);
  const act = async () => {
    await request("DELETE", `queues/${own}${asking === "purge" ? "/contents" : ""}`);
  };
  return html`
    <${Failure} error=${isStale ? null : error} />
    <p><${Features} row=${queue} /> in virtual host <${Name} value=${queue.vhost} />, ${queue.state}</p>
    <section class="large" aria-label="Messages">
      <div><b>${number(queue.messages_ready)}</b> ready</div>
      <div><b>${number(queue.messages_unacknowledged)}</b> unacked</div>
      <div><b>${number(queue.messages)}</b> in all, ${bytes(queue.message_bytes)}</div>
    </section>
    <${QueuePast} history=${data.history} query=${route.query} setQuery=${setQuery} />
    <section class="figures" aria-label="Rates">
      ${[["publish", "in"], ["deliver", "delivered"], ["deliver_no_ack", "delivered without ack"], ["get", "got"], ["ack", "acked"], ["redeliver", "redelivered"]]
        .map(([key, title]) => html`<div key=${key}><b>${rate(stat(key))}</b> ${title}</div>`)}
    </section>
    ${warnings.map((text) => html`<p key=${text} class="notice busy" role="note">${visible(text)}</p>`)}
    <h2>Why it is so</h2>
    <${Settings} vhost=${vhost} settings=${settings} />
    <h2>Consumers</h2>
    <${Consumers} queue=${queue} />
    <h2>Bindings to it</h2>
    <${Bindings} ...${{vhost, name, bindings, refresh}} />
    ${data.binding_count > bindings.length ? html`<p class="hint">${number(bindings.length)} of ${number(data.binding_count)} are shown.</p>` : null}
    <section class="actions">
      <${Publish} vhost=${vhost} name=${name} onDone=${refresh} />
      <${Get} own=${own} onDone=${refresh} />
    </section>
    <p class="buttons"><button type="button" onClick=${ask("purge")}>Purge…</button>
      <button type="button" class="danger" onClick=${ask("delete")}>Delete…</button></p>
    ${asking ? html`<${Confirm} title=${asking === "purge" ? "Purge" : "Delete"} action=${asking === "purge" ? "Purge" : "Delete"} word=${queue.messages > MUCH ? name : null}
      onDo=${act} onClose=${(isDone) => {
        const was = asking;
        setAsking(null);
        if (isDone && was === "delete") location.hash = link(["queues"]);
        else if (isDone) refresh();
      }}>
      <p>${asking === "purge" ? html`${number(queue.messages_ready)} ready messages of <${Name} value=${name} /> will be gone; the ${number(queue.messages_unacknowledged)} unacked ones stay.`
        : html`<${Name} value=${name} />, ${number(queue.messages)} messages, ${number(bindings.length)} bindings will be gone.`}</p>
    </${Confirm}>` : null}`;
}

function Source({vhost, row}) {
  if (row.source === "argument") return html`the declaration`;
  return html`${row.source} <a href=${link(["policies"], {vhost, name: row.name})}><${Name} value=${row.name} /></a>`;
}

function Settings({vhost, settings}) {
  if (!settings.length) return html`<p class="empty">Neither its declaration nor a policy says anything: no limit, no expiry, nothing dead-lettered.</p>`;
  return html`<table><caption class="unseen">Settings in force</caption><thead><tr><th scope="col">Setting</th><th scope="col">Value</th><th scope="col">From</th>
    <th scope="col">Overruled</th></tr></thead><tbody>${settings.map((row) => {
    const show = (value) => (SHOW[row.key] && typeof value === "number" ? SHOW[row.key](value) : visible(value));
    const value = row.key === "dead-letter-exchange" ? html`<a href=${link(["exchanges"], {vhost, name: row.value})}>${show(row.value)}</a>` : show(row.value);
    return html`<tr key=${row.key}><td>${TITLES[row.key]}</td><td title=${String(row.value)}>${value}</td><td><${Source} vhost=${vhost} row=${row} /></td>
      <td>${row.overruled.map((other, at) => html`${at ? ", " : ""}<s>${show(other.value)}</s> of <${Source} vhost=${vhost} row=${other} />`)}</td></tr>`;
  })}</tbody></table>`;
}

function Consumers({queue}) {
  const columns = [
    {key: "tag", title: "Tag", cell: (row) => html`<${Name} value=${row.consumer_tag} />`},
    {key: "channel", title: "Channel", wide: true, cell: (row) => html`<${Name} value=${row.channel_details.name} />`},
    {key: "user", title: "User", wide: true, cell: (row) => visible(row.channel_details.user)},
    {key: "ack", title: "Ack", cell: (row) => (row.ack_required ? "by the client" : "at delivery")},
    {key: "prefetch", title: "Prefetch", figure: true, cell: (row) => (row.prefetch_count ? number(row.prefetch_count) : "no limit")},
    {key: "active", title: "Active", wide: true, cell: (row) => (row.active ? "active" : visible(row.activity_status))},
  ];
  return html`<${Table} caption="Consumers" columns=${columns} rows=${queue.consumer_details} keyOf=${(row) => row.channel_details.name + row.consumer_tag}
    query=${{}} empty=${queue.messages_ready ? html`Nobody consumes, and ${number(queue.messages_ready)} messages wait.` : "Nobody consumes."} />`;
}

function Bindings({vhost, name, bindings, refresh}) {
  const [state, setState] = useState({});
  const bind = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    try {
      await request("POST", `bindings/${path(vhost)}/e/${path(form.get("source"))}/q/${path(name)}`, {routing_key: form.get("key"), arguments: {}});
      setState({});
      refresh();
    } catch (error) {
      setState({error});
    }
  };
  const unbind = (row) => async () => {
    await request("DELETE", `bindings/${path(vhost)}/e/${path(row.source)}/q/${path(name, row.properties_key)}`).catch((error) => setState({error}));
    refresh();
  };
  const columns = [
    {key: "source", title: "From", cell: (row) => html`<${Name} value=${row.source} empty="(default)" />`},
    {key: "key", title: "Routing key", cell: (row) => html`<${Name} value=${row.routing_key} />`},
    {key: "arguments", title: "Arguments", wide: true, cell: (row) => (Object.keys(row.arguments).length ? html`<code>${visible(JSON.stringify(row.arguments))}</code>` : "")},
    {key: "unbind", title: "", wide: true, cell: (row) => (row.source ? html`<button type="button" onClick=${unbind(row)}>Unbind</button>` : "")},
  ];
  return html`<${Table} caption="Bindings" columns=${columns} rows=${bindings} keyOf=${(row) => `${row.source} ${row.properties_key}`} query=${{}} />
    <form class="filter" onSubmit=${bind}><label>Exchange <input name="source" required /></label>
      <label>Routing key <input name="key" /></label><button type="submit">Bind</button></form><${Failure} error=${state.error} />`;
}

function Publish({vhost, name, onDone}) {
  const [state, setState] = useState({});
  const publish = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    try {
      const headers = form.get("headers") ? JSON.parse(form.get("headers")) : {};
      const found = await request("POST", `exchanges/${path(vhost)}/amq.default/publish`, {
        routing_key: name, payload: form.get("payload"), payload_encoding: "string",
        properties: {headers, delivery_mode: form.get("persistent") ? 2 : 1},
      });
      setState({text: found.routed ? "It is in the queue." : "Nobody took it."});
      onDone();
    } catch (error) {
      setState({error: error instanceof SyntaxError ? {status: 0, message: `The headers are no JSON: ${error.message}`} : error});
    }
  };
  return html`<details><summary>Publish to it</summary><form onSubmit=${publish}>
    <label>Body <textarea name="payload" rows="4"></textarea></label>
    <label>Headers as JSON <input name="headers" placeholder='{"type": "order"}' /></label>
    <label class="check"><input type="checkbox" name="persistent" checked /> Persistent</label>
    <${Failure} error=${state.error} />${state.text ? html`<p class="notice good" role="status">${state.text}</p>` : null}
    <button type="submit" class="main">Publish</button></form></details>`;
}

function Get({own, onDone}) {
  const [state, setState] = useState({found: null});
  const get = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    try {
      const found = await request("POST", `queues/${own}/get`, {count: Number(form.get("count")), ackmode: form.get("ackmode"), encoding: "auto", truncate: 50000});
      setState({found});
      onDone();
    } catch (error) {
      setState({found: null, error});
    }
  };
  return html`<details><summary>Get messages</summary><form onSubmit=${get}>
    <label>How many <input name="count" type="number" min="1" max="100" value="1" /></label>
    <label>And then <select name="ackmode">${MODES.map(([value, title]) => html`<option key=${value} value=${value}>${title}</option>`)}</select></label>
    <p class="hint">Put back or not, a message that was got is marked as redelivered, and consumers may get others meanwhile.</p>
    <${Failure} error=${state.error} /><button type="submit">Get</button></form>
    ${state.found === null ? null : state.found.length ? state.found.map((message, at) => html`<article key=${at} class="message">
      <p class="hint">${bytes(message.payload_bytes)}, ${message.redelivered ? "redelivered" : "not delivered before"}, from
        <${Name} value=${message.exchange} empty="(default)" /> with key <${Name} value=${message.routing_key} />, ${number(message.message_count)} left</p>
      <pre><code>${visible(JSON.stringify(message.properties))}</code></pre>
      <pre>${message.payload_encoding === "base64" ? `base64: ${message.payload}` : message.payload}</pre></article>`) : html`<p class="empty" role="status">The queue is empty.</p>`}
  </details>`;
}
