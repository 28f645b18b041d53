// A message that is published by hand, and those that are got.
import {useState} from "../vendor/hooks.js";
import {request} from "../api.js";
import {bytes, number, visible} from "../format.js";
import {html} from "../html.js";
import {ExchangeLink, Failure, Name} from "../parts.js";
import {path} from "../route.js";
import {Fields, Unfit, objectOf, useFields} from "./fields.js";

const BODY_MAX = 16 * 1000 * 1000;
// name, title, what it is for, and whether it is a number.
const PROPERTIES = [
  ["content_type", "Content type", "such as application/json"], ["content_encoding", "Content encoding", "such as gzip"],
  ["priority", "Priority", "0 to 255; for queues with priorities", true], ["expiration", "Expiration", "milliseconds after which it is dropped or dead-lettered"],
  ["correlation_id", "Correlation id", "which request it answers"], ["reply_to", "Reply to", "the queue that an answer goes to"],
  ["message_id", "Message id", "the application's own name for it"], ["timestamp", "Timestamp", "seconds since 1970", true],
  ["type", "Type", "the application's own kind"], ["user_id", "User id", "your own name, or the publish is refused"],
  ["app_id", "App id", "which application made it"],
];
const MODES = [
  ["ack_requeue_true", "Look only: put them back", "They go back to their places, marked as redelivered; consumers may get others meanwhile."],
  ["reject_requeue_true", "Reject and put back", "The same for the queue: what a consumer does that cannot handle a message now."],
  ["ack_requeue_false", "Take them away", "They are acknowledged: gone for good."],
  ["reject_requeue_false", "Reject them", "They go to the dead-letter exchange, if the queue has one, else they are gone."],
];

async function bodyOf(form, kind) {
  if (kind === "file") {
    const file = form.get("file");
    if (!file?.size && !file?.name) throw new Unfit("No file is chosen.");
    if (file.size > BODY_MAX) throw new Unfit(`The file is larger than ${bytes(BODY_MAX)}: publish it by AMQP.`);
    const octets = new Uint8Array(await file.arrayBuffer());
    let text = "";
    for (let at = 0; at < octets.length; at += 32768) text += String.fromCharCode(...octets.subarray(at, at + 32768));
    return {payload: btoa(text), payload_encoding: "base64"};
  }
  const payload = form.get("payload") ?? "";
  if (kind === "base64") return {payload, payload_encoding: "base64"};
  if (kind === "json") {
    try {
      JSON.parse(payload);
    } catch (error) {
      throw new Unfit(`The body is no JSON: ${error.message}`);
    }
  }
  return {payload, payload_encoding: "string"};
}

// `routingKey` is fixed on a queue's page; on an exchange's it is asked for.
export function Publish({vhost, exchange, routingKey, onDone}) {
  const [kind, setKind] = useState("text");
  const [rows, setRows] = useFields();
  const [state, setState] = useState({});
  const publish = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    try {
      const properties = {delivery_mode: form.get("persistent") ? 2 : 1};
      for (const [key, , , isNumber] of PROPERTIES) if (form.get(key)) properties[key] = isNumber ? Number(form.get(key)) : form.get(key);
      if (kind === "json" && !properties.content_type) properties.content_type = "application/json";
      if (rows.length) properties.headers = objectOf(rows);
      const found = await request("POST", `exchanges/${path(vhost, exchange || "amq.default")}/publish`, {
        routing_key: routingKey ?? form.get("key"), properties, ...await bodyOf(form, kind),
      });
      setState({isRouted: found.routed});
      onDone?.();
    } catch (error) {
      setState({error});
    }
  };
  return html`<details><summary>Publish a message${routingKey === undefined ? "" : " to it"}</summary><form onSubmit=${publish}>
    ${routingKey === undefined ? html`<label>Routing key <input name="key" autocomplete="off" /></label>`
      : html`<p class="hint">By the default exchange, with the queue's name as its routing key.</p>`}
    <label>Body as <select value=${kind} onChange=${(event) => setKind(event.target.value)}><option value="text">text</option><option value="json">JSON (checked)</option>
      <option value="base64">base64</option><option value="file">a file</option></select></label>
    ${kind === "file" ? html`<label>File <input type="file" name="file" /></label>` : html`<label>Body <textarea name="payload" rows="4"></textarea></label>`}
    <label class="check"><input type="checkbox" name="persistent" defaultChecked /> Persistent: survives a restart in a durable queue</label>
    <${Fields} legend="Headers" hint="CC and BCC (lists of texts) are further routing keys; consumers do not see BCC." ...${{rows, setRows}} />
    <details><summary>Properties</summary><div class="fields">${PROPERTIES.map(([key, title, hint, isNumber]) => html`<label key=${key}>${title}
      <input name=${key} type=${isNumber ? "number" : "text"} min=${isNumber ? 0 : undefined} autocomplete="off" /><span class="hint">${hint}</span></label>`)}</div></details>
    <${Failure} error=${state.error} />
    ${state.isRouted === undefined ? null : html`<p class=${state.isRouted ? "notice good" : "notice busy"} role="status">
      ${state.isRouted ? "Published, and in a queue." : "Published, but no queue took it: it is gone."}</p>`}
    <button type="submit" class="main">Publish</button></form></details>`;
}

export function Get({vhost, name, ready, onDone}) {
  const [state, setState] = useState({found: null});
  const [mode, setMode] = useState(MODES[0][0]);
  const get = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    try {
      const found = await request("POST", `queues/${path(vhost, name)}/get`, {count: Number(form.get("count")), ackmode: mode, encoding: "auto", truncate: 50000});
      setState({found});
      onDone();
    } catch (error) {
      setState({found: null, error});
    }
  };
  const [, , words] = MODES.find(([key]) => key === mode);
  const isLost = mode.endsWith("_false");
  return html`<details><summary>Get messages</summary><form onSubmit=${get}>
    <label>How many <input name="count" type="number" min="1" max="100" defaultValue="1" /></label>
    <label>And then <select value=${mode} onChange=${(event) => setMode(event.target.value)}>${MODES.map(([key, title]) => html`<option key=${key} value=${key}>${title}</option>`)}</select></label>
    <p class=${isLost ? "notice busy" : "hint"}>${words} ${number(ready)} are ready.</p>
    <${Failure} error=${state.error} /><button type="submit" class=${isLost ? "danger" : ""}>Get</button></form>
    ${state.found === null ? null : state.found.length ? state.found.map((message, at) => html`<${Message} key=${at} ...${{vhost, message}} />`)
      : html`<p class="empty" role="status">The queue is empty.</p>`}
  </details>`;
}

function Message({vhost, message}) {
  const {headers = {}, ...properties} = message.properties;
  const rows = [...Object.entries(properties), ...Object.entries(headers).map(([key, value]) => [`header ${key}`, value])];
  const octets = message.payload_encoding === "string" ? null : Uint8Array.from(atob(message.payload), (sign) => sign.charCodeAt(0));
  const isCut = (octets ? octets.length : new Blob([message.payload]).size) < message.payload_bytes;
  const text = octets === null ? message.payload : isCut ? textOf(octets) : null;
  return html`<article class="message">
    <p><${ExchangeLink} vhost=${vhost} name=${message.exchange} /> with key <${Name} value=${message.routing_key} />, ${bytes(message.payload_bytes)},
      ${message.redelivered ? html` <strong>redelivered</strong>` : " not delivered before"}, ${number(message.message_count)} behind it</p>
    ${rows.length ? html`<dl>${rows.map(([key, value]) => html`<dt key=${key}>${visible(key)}</dt><dd><code>${visible(typeof value === "object" ? JSON.stringify(value) : value)}</code></dd>`)}</dl>` : null}
    <pre tabindex="0">${text === null ? `base64: ${message.payload}` : shownBody(text)}</pre>
    ${isCut ? html`<p class="hint">Its first 50,000 bytes.</p>` : null}</article>`;
}

// A text that was cut within a sign is none to the node; null: it is none before that either.
function textOf(octets) {
  try {
    return new TextDecoder("utf-8", {fatal: true}).decode(octets, {stream: true});
  } catch {
    return null;
  }
}

function shownBody(text) {
  return text.split(/([\n\t])/).map((part) => (part.trim() ? visible(part) : part)).join("");
}
