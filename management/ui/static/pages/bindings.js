// The bindings of a queue or an exchange: both ways, made and removed.
import {useState} from "../vendor/hooks.js";
import {request} from "../api.js";
import {number, visible} from "../format.js";
import {html} from "../html.js";
import {ExchangeLink, Failure, Name, QueueLink, Table} from "../parts.js";
import {path} from "../route.js";
import {Fields, objectOf, useFields} from "./fields.js";

const KINDS = {queue: "q", exchange: "e"};

export function Destination({vhost, row}) {
  if (row.destination_type === "queue") return html`<${QueueLink} vhost=${vhost} name=${row.destination} />`;
  return html`<${ExchangeLink} vhost=${vhost} name=${row.destination} /> <span class="hint">exchange</span>`;
}

export function Arguments({value}) {
  return Object.keys(value).length ? html`<code>${visible(JSON.stringify(value))}</code>` : "";
}

const ENDS = 6;

// What leads to a queue, and where its dead letters go, at a glance: the tables have each binding.
export function Ways({vhost, name, bindings, count, hops}) {
  const sources = new Map();
  for (const {source, routing_key} of bindings) sources.set(source, [...(sources.get(source) ?? []), routing_key]);
  const [hop] = hops;
  return html`<div class="ways" role="group" aria-label="What leads to it, and where its dead letters go">
    <ul>${[...sources].slice(0, ENDS).map(([source, keys]) => html`<li key=${source}><${ExchangeLink} vhost=${vhost} name=${source} />${" "}
      <span class="hint">${keys.length === 1 ? html`by <${Name} value=${keys[0]} length=${20} />` : `by ${number(keys.length)} keys`}</span></li>`)}
      ${sources.size > ENDS || count > bindings.length ? html`<li class="hint">and more</li>` : null}</ul>
    <span class="arrow" aria-label="to">→</span><strong><${Name} value=${name} /></strong>
    ${hop ? html`<span class="arrow" aria-label="dead letters to">⇢</span><ul><li>${hop.exists ? html`<${ExchangeLink} vhost=${vhost} name=${hop.exchange} />` : html`<s><${Name} value=${hop.exchange} /></s> <span class="hint">does not exist</span>`}${" "}
      <span class="hint">dead letters</span></li>${hop.targets.slice(0, ENDS).map((row) => html`<li key=${row.name}>→ <${QueueLink} vhost=${vhost} name=${row.name} /></li>`)}</ul>` : null}</div>`;
}

// `side`: "source" shows where they come from, "destination" where they lead.
export function BindingTable({caption, vhost, side, bindings, count, empty, onDone}) {
  const [error, setError] = useState(null);
  const unbind = (row) => async () => {
    setError(null);
    const ends = `${path(row.source)}/${KINDS[row.destination_type]}/${path(row.destination, row.properties_key)}`;
    await request("DELETE", `bindings/${path(vhost)}/e/${ends}`).catch(setError);
    onDone();
  };
  const columns = [
    side === "source"
      ? {key: "source", title: "From", cell: (row) => html`<${ExchangeLink} vhost=${vhost} name=${row.source} />`}
      : {key: "destination", title: "To", cell: (row) => html`<${Destination} ...${{vhost, row}} />`},
    {key: "key", title: "Routing key", cell: (row) => html`<${Name} value=${row.routing_key} />`},
    {key: "arguments", title: "Arguments", wide: true, cell: (row) => html`<${Arguments} value=${row.arguments} />`},
    {key: "unbind", title: "", figure: true, wide: true, cell: (row) => (row.source ? html`<button type="button" onClick=${unbind(row)}>Unbind</button>` : html`<span class="hint">by its name</span>`)},
  ];
  return html`<${Failure} error=${error} />
    <${Table} caption=${caption} columns=${columns} rows=${bindings} query=${{}} empty=${empty}
      keyOf=${(row) => `${row.source} ${row.destination_type} ${row.destination} ${row.properties_key}`} />
    ${count > bindings.length ? html`<p class="hint">${number(bindings.length)} of ${number(count)} are shown.</p>` : null}`;
}

// `to`: the queue or exchange that is bound, or null where `from` is fixed and the form asks for the destination.
export function Bind({vhost, from, to, isByHeaders, onDone}) {
  const [rows, setRows] = useFields();
  const [state, setState] = useState({});
  const bind = async (event) => {
    event.preventDefault();
    const target = event.target;
    const form = new FormData(target);
    const kind = to?.kind ?? form.get("kind");
    try {
      const ends = `${path(from ?? form.get("source"))}/${KINDS[kind]}/${path(to?.name ?? form.get("destination"))}`;
      await request("POST", `bindings/${path(vhost)}/e/${ends}`, {routing_key: form.get("key"), arguments: objectOf(rows)});
      setState({done: true});
      setRows([]);
      target.reset();
      onDone();
    } catch (error) {
      setState({error});
    }
  };
  const hint = "For a headers exchange: the headers that a message must have, and x-match: all, any, all-with-x, any-with-x. Others take no notice.";
  return html`<details class="bind" open=${isByHeaders}><summary>${to ? "Bind it to an exchange" : "Bind something to it"}</summary><form onSubmit=${bind}>
    <div class="fields">
      ${from === undefined ? html`<label>Exchange <input name="source" required autocomplete="off" /></label>` : null}
      ${to ? null : html`<label>What <select name="kind"><option value="queue">a queue</option><option value="exchange">an exchange</option></select></label>
        <label>Its name <input name="destination" required autocomplete="off" /></label>`}
      <label>Routing key <input name="key" autocomplete="off" /></label>
    </div>
    <${Fields} legend="Arguments" hint=${hint} ...${{rows, setRows}} />
    <${Failure} error=${state.error} />${state.done ? html`<p class="notice good" role="status">Bound.</p>` : null}
    <button type="submit">Bind</button></form></details>`;
}
