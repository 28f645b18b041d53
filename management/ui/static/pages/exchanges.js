// All exchanges, and a new one.
import {useState} from "../vendor/hooks.js";
import {request} from "../api.js";
import {ExchangeFeatures} from "../features.js";
import {rateCell, visible} from "../format.js";
import {html} from "../html.js";
import {ExchangeLink, Failure, Name} from "../parts.js";
import {path} from "../route.js";
import {Fields, objectOf, useFields} from "./fields.js";
import {List, text} from "./lists.js";

const TYPES = [
  ["direct", "to the queues bound with exactly the routing key"], ["topic", "by patterns of words: * is one word, # any number"],
  ["fanout", "to everything that is bound"], ["headers", "by the headers of the message"],
  ["x-consistent-hash", "to one of them by the key's hash, by weight"], ["x-modulus-hash", "to one of them by the key's hash modulo their count"],
  ["x-random", "to one of them by chance"], ["x-recent-history", "to everything that is bound; who is bound later gets the last messages"],
];
const COLUMNS = [
  {key: "vhost", title: "Virtual host", sort: "vhost", wide: true, cell: text("vhost")},
  {key: "name", title: "Name", sort: "name", cell: (row) => html`<${ExchangeLink} ...${row} />`},
  {key: "type", title: "Type", sort: "type", cell: (row) => visible(row.type)},
  {key: "features", title: "Features", wide: true, cell: (row) => html`<${ExchangeFeatures} row=${row} />`},
  {key: "in", title: "In", sort: "message_stats.publish_in_details.rate", figure: true, cell: (row) => rateCell(row.message_stats ? row.message_stats.publish_in_details?.rate : 0)},
  {key: "out", title: "Out", sort: "message_stats.publish_out_details.rate", figure: true, wide: true, cell: (row) => rateCell(row.message_stats ? row.message_stats.publish_out_details?.rate : 0)},
];

export function Exchanges(props) {
  const [made, setMade] = useState(0);
  return html`<${List} key=${made} kind="exchanges" perVhost noun="exchanges" ...${props} columns=${COLUMNS} keyOf=${(row) => `${row.vhost} ${row.name}`}
      empty="No exchange has such a name." />
    <${Declare} vhost=${props.vhost || "/"} onDone=${() => setMade(made + 1)} />`;
}

function Declare({vhost, onDone}) {
  const [rows, setRows] = useFields();
  const [state, setState] = useState({});
  const submit = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    try {
      const given = objectOf(rows);
      if (form.get("alternate")) given["alternate-exchange"] = form.get("alternate");
      await request("PUT", `exchanges/${path(form.get("vhost"), form.get("name"))}`, {
        type: form.get("type"), durable: form.get("durable") === "on", auto_delete: form.get("auto_delete") === "on",
        internal: form.get("internal") === "on", arguments: given,
      });
      setState({vhost: form.get("vhost"), done: form.get("name")});
      onDone();
    } catch (error) {
      setState({error});
    }
  };
  return html`<details class="declare"><summary>Declare an exchange</summary><form onSubmit=${submit}>
    <div class="fields">
      <label>Name <input name="name" required autocomplete="off" /></label>
      <label>Virtual host <input name="vhost" defaultValue=${vhost} required autocomplete="off" /></label>
      <label>Type <select name="type">${TYPES.map(([key, words]) => html`<option key=${key} value=${key}>${key}: ${words}</option>`)}</select></label>
      <label>Alternate exchange <input name="alternate" autocomplete="off" /><span class="hint">gets what this one cannot route</span></label>
    </div>
    <label class="check"><input type="checkbox" name="durable" defaultChecked /> Durable: survives a restart</label>
    <label class="check"><input type="checkbox" name="auto_delete" /> Auto-delete: goes with its last binding</label>
    <label class="check"><input type="checkbox" name="internal" /> Internal: no client can publish to it, only exchanges that are bound to it</label>
    <${Fields} legend="Other arguments" ...${{rows, setRows}} />
    <${Failure} error=${state.error} />
    ${state.done ? html`<p class="notice good" role="status"><${ExchangeLink} vhost=${state.vhost} name=${state.done} /> is there.</p>` : null}
    <button type="submit" class="main">Declare</button></form></details>`;
}
