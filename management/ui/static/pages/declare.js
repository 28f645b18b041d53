// A queue with every argument, and what each of them does.
import {useState} from "../vendor/hooks.js";
import {request} from "../api.js";
import {html} from "../html.js";
import {Failure, QueueLink} from "../parts.js";
import {path} from "../route.js";
import {Fields, objectOf, useFields} from "./fields.js";

export const NUMBERS = [
  ["x-message-ttl", "Message TTL", "milliseconds after which a message that nobody took is dropped or dead-lettered"],
  ["x-expires", "Expires", "milliseconds without use after which the queue is deleted"],
  ["x-max-length", "Max length", "ready messages; what happens beyond is the overflow's business"],
  ["x-max-length-bytes", "Max length bytes", "the same in bytes of bodies"],
  ["x-max-priority", "Max priority", "priorities from 0 to this; a few are enough, each costs memory"],
];
// For declarations: a policy may have them too, among its other keys.
const MORE_NUMBERS = [
  ["x-consumer-timeout", "Consumer timeout", "milliseconds that a consumer may keep a message unacked before its channel is closed"],
];
const MORE_CHOICES = [
  ["x-queue-type", "Type", ["classic", "quorum", "stream"], "messages of quorum queues and streams are on several servers: for nodes with cluster.urls"],
  ["x-queue-version", "Version of its files", ["1", "2"], "2 needs less memory for long queues; not set: the node's default"],
  ["x-queue-master-locator", "Master locator", ["min-masters", "client-local", "random"], "taken for RabbitMQ's sake; one node has no choice"],
];
export const TEXTS = [
  ["x-dead-letter-exchange", "Dead-letter exchange", "gets what expires, is rejected or is beyond a limit"],
  ["x-dead-letter-routing-key", "Dead-letter routing key", "instead of the message's own"],
  ["x-max-age", "Max age", "of streams: 7D, 12h or 30m, after which a message goes"],
];
export const CHOICES = [
  ["x-overflow", "Overflow", ["drop-head", "reject-publish", "reject-publish-dlx"], "the oldest goes, or the newest is refused"],
  ["x-queue-mode", "Mode", ["default", "lazy"], "lazy keeps messages on disk and few in memory"],
];

export function Declare({vhost, onDone}) {
  const [state, setState] = useState({});
  const [rows, setRows] = useFields();
  const submit = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    const given = {};
    for (const [key] of [...NUMBERS, ...MORE_NUMBERS]) if (form.get(key)) given[key] = Number(form.get(key));
    for (const [key] of [...TEXTS, ...CHOICES, ...MORE_CHOICES]) if (form.get(key)) given[key] = form.get(key);
    if (given["x-queue-version"]) given["x-queue-version"] = Number(given["x-queue-version"]);
    if (form.get("x-single-active-consumer")) given["x-single-active-consumer"] = true;
    // The default exchange's name is the empty one: a queue that dead-letters to it says so by a tick.
    if (form.get("to-default")) given["x-dead-letter-exchange"] = "";
    try {
      Object.assign(given, objectOf(rows));
      await request("PUT", `queues/${path(form.get("vhost"), form.get("name"))}`, {
        durable: form.get("durable") === "on", auto_delete: form.get("auto_delete") === "on", arguments: given,
      });
      setState({vhost: form.get("vhost"), done: form.get("name")});
      onDone();
    } catch (error) {
      setState({error});
    }
  };
  return html`<details class="declare"><summary>Declare a queue</summary><form onSubmit=${submit}>
    <div class="fields">
      <label>Name <input name="name" required autocomplete="off" /></label>
      <label>Virtual host <input name="vhost" defaultValue=${vhost} required autocomplete="off" /></label>
      ${[...NUMBERS, ...MORE_NUMBERS].map(([key, title, hint]) => html`<label key=${key}>${title} <input name=${key} type="number" min="0" /><span class="hint">${hint}</span></label>`)}
      ${TEXTS.map(([key, title, hint]) => html`<label key=${key}>${title} <input name=${key} /><span class="hint">${hint}</span></label>`)}
      ${[...CHOICES, ...MORE_CHOICES].map(([key, title, values, hint]) => html`<label key=${key}>${title} <select name=${key}><option value="">not set</option>
        ${values.map((value) => html`<option key=${value}>${value}</option>`)}</select><span class="hint">${hint}</span></label>`)}
    </div>
    <label class="check"><input type="checkbox" name="durable" defaultChecked /> Durable: survives a restart</label>
    <label class="check"><input type="checkbox" name="auto_delete" /> Auto-delete: goes with its last consumer</label>
    <label class="check"><input type="checkbox" name="x-single-active-consumer" /> Single active consumer: one gets everything, the next when it is gone</label>
    <label class="check"><input type="checkbox" name="to-default" /> Dead letters to the default exchange: with a dead-letter routing key, to the queue of that name</label>
    <${Fields} legend="Other arguments" hint="What this node does not know, it keeps and shows." ...${{rows, setRows}} />
    <${Failure} error=${state.error} />
    ${state.done ? html`<p class="notice good" role="status"><${QueueLink} vhost=${state.vhost} name=${state.done} /> is there.</p>` : null}
    <button type="submit" class="main">Declare</button></form></details>`;
}
