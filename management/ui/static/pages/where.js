// Where would this key go? Asked of the server's own routing; nothing is published. The question stands in the address.
import {useEffect, useState} from "../vendor/hooks.js";
import {request} from "../api.js";
import {many, number, visible} from "../format.js";
import {html} from "../html.js";
import {ExchangeLink, Failure, Name, QueueLink, Table} from "../parts.js";
import {path} from "../route.js";
import {Arguments, Destination} from "./bindings.js";
import {Fields, Unfit, objectOf, useFields} from "./fields.js";

function headersIn(query) {
  try {
    const found = JSON.parse(query.headers || "{}");
    return found && typeof found === "object" && !Array.isArray(found) ? found : {};
  } catch {
    return {};
  }
}

export function Where({vhost, name, type, user, query, setQuery}) {
  const [rows, setRows] = useFields(headersIn(query));
  const [state, setState] = useState({});
  const isAsked = query.key !== undefined || query.headers !== undefined;
  useEffect(() => {
    if (!isAsked) return undefined;
    const stop = new AbortController();
    const body = {routing_key: query.key ?? "", headers: headersIn(query), about: query.about ?? "", user: query.as ?? ""};
    request("POST", `burrowmq/pages/route/${path(vhost, name || "amq.default")}`, body, stop.signal).then(
      (found) => setState({found}),
      (error) => stop.signal.aborted || setState({error}),
    );
    return () => stop.abort();
  }, [vhost, name, query.key, query.headers, query.about, query.as, query.asked]);
  const ask = (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    try {
      const headers = objectOf(rows);
      // URLSearchParams keeps an empty key only if there is something else to tell that it was asked for.
      setQuery({...query, key: form.get("key"), headers: JSON.stringify(headers), about: form.get("about"), as: form.get("as") ?? "", asked: Number(query.asked ?? 0) + 1});
    } catch (error) {
      setState({error: error instanceof Unfit ? error : {status: 0, message: String(error)}});
    }
  };
  const isByHeaders = type === "headers";
  return html`<section aria-labelledby="where"><h2 id="where">Where would this key go?</h2>
    <form onSubmit=${ask}>
      <div class="fields">
        <label>Routing key <input name="key" defaultValue=${query.key ?? ""} autocomplete="off" />
          <span class="hint">${isByHeaders ? "of no importance to this exchange, but perhaps to those behind it" : name ? "" : "of the default exchange: a queue's name"}</span></label>
        <label>Why not <input name="about" defaultValue=${query.about ?? ""} autocomplete="off" /><span class="hint">only queues with this in their name; nothing: all</span></label>
        ${user.tags.includes("administrator") ? html`<label>Published by <input name="as" defaultValue=${query.as ?? ""} placeholder=${user.name} autocomplete="off" />
          <span class="hint">the user whose permissions are checked</span></label>` : null}
      </div>
      <${Fields} legend="Headers" hint="CC and BCC (JSON lists of texts) are routing keys too." ...${{rows, setRows}} />
      <p><button type="submit" class="main">Look</button> <span class="hint">Nothing is published.</span></p>
    </form>
    <${Failure} error=${state.error} />
    ${state.found ? html`<${Answer} vhost=${vhost} found=${state.found} />` : null}</section>`;
}

function Target({vhost, row}) {
  if (row.kind === "queue") return html`<${QueueLink} vhost=${vhost} name=${row.name} />`;
  if (row.kind === "queue elsewhere") return html`<${Name} value=${row.name} /> at another front-end`;
  return html`a client that waits for a direct reply`;
}

function Answer({vhost, found}) {
  const {queues, steps} = found;
  const lost = steps.find((step) => step.alternate && !step.alternate.exists && !step.matched_count);
  const columns = [
    {key: "queue", title: "Queue", cell: (row) => html`<${Target} vhost=${vhost} row=${row} />`},
    {key: "by", title: "By which binding", cell: (row) => row.by.map((each, at) => html`<div key=${at}><${By} vhost=${vhost} row=${each} /></div>`)},
  ];
  return html`<div role="status">
    ${found.refused ? html`<p class="notice bad">A publish would be refused: ${visible(found.refused)}</p>` : null}
    ${found.keys.length > 1 ? html`<p>Routed by ${found.keys.map((each, at) => html`${at ? ", " : ""}<code>${visible(each.key)}</code>${at ? ` (${each.from})` : ""}`)}.</p>` : null}
    ${found.queue_count ? html`<p class="notice good">It would go to ${found.queue_count === 1 ? "one queue" : many(found.queue_count, "queues")}, one copy each.</p>`
      : html`<p class="notice busy">No queue would get it: it would be dropped, or returned to its publisher if it is mandatory.${lost
        ? html` The alternate exchange <${Name} value=${lost.alternate.name} /> does not exist.` : null}</p>`}
    ${queues.length ? html`<${Table} caption="Queues that would get it" columns=${columns} rows=${queues} keyOf=${(row) => row.name} query=${{}} />` : null}
    ${found.queue_count > queues.length ? html`<p class="hint">${number(queues.length)} of ${number(found.queue_count)} are shown.</p>` : null}
    ${steps.map((step) => html`<${Step} key=${step.exchange} ...${{vhost, step}} />`)}
    ${found.step_count > steps.length ? html`<p class="hint">${number(steps.length)} of ${many(found.step_count, "exchanges")} on its way are shown.</p>` : null}</div>`;
}

function By({vhost, row}) {
  return html`<${ExchangeLink} vhost=${vhost} name=${row.source} />, ${row.source ? html`key <code>${visible(row.routing_key, "(empty)")}</code>` : "by its name"}${row.matched_key === row.routing_key ? null : html` for <code>${visible(row.matched_key, "(empty)")}</code>`} <${Arguments} value=${row.arguments} />`;
}

function Step({vhost, step}) {
  const all = step.matched_count + step.missed_count;
  const onward = step.matched.filter((row) => row.destination_type === "exchange");
  const columns = [
    {key: "to", title: "Not to", cell: (row) => html`<${Destination} ...${{vhost, row}} />`},
    {key: "why", title: "Because", cell: (row) => html`<span class="name">${visible(row.why)}</span>`},
    {key: "key", title: "Its key", wide: true, cell: (row) => html`<code>${visible(row.routing_key)}</code>`},
    {key: "arguments", title: "Its arguments", wide: true, cell: (row) => html`<${Arguments} value=${row.arguments} />`},
  ];
  const {alternate} = step;
  return html`<details open=${step.missed.length > 0 && step.missed.length <= 10}>
    <summary><${Name} value=${step.exchange} empty="(default)" /> <span class="hint">${step.type}, ${visible(step.how)}:${" "}
      ${step.exchange ? `${number(step.matched_count)} of ${many(all, "bindings")} match` : step.matched_count ? "the key is a queue's name" : "no queue has this name"}</span></summary>
    ${onward.length ? html`<p>On to ${onward.map((row, at) => html`${at ? ", " : ""}<${ExchangeLink} key=${at} vhost=${vhost} name=${row.destination} />`)}</p>` : null}
    ${alternate ? html`<p>Its alternate exchange <${ExchangeLink} vhost=${vhost} name=${alternate.name} /> ${alternate.is_taken ? "gets it, because no binding matches."
      : alternate.exists ? "is not asked, because a binding matches." : "does not exist."}</p>` : null}
    ${step.missed.length ? html`<${Table} caption="Bindings that do not match" columns=${columns} rows=${step.missed} query=${{}}
      keyOf=${(row) => `${row.destination_type} ${row.destination} ${row.properties_key}`} />` : null}
    ${step.missed_count > step.missed.length ? html`<p class="hint">${number(step.missed.length)} of ${number(step.missed_count)} that do not match are shown.</p>` : null}</details>`;
}
