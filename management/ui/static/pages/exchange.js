// One exchange: where keys go, its bindings both ways, and what can be done with it.
import {useState} from "../vendor/hooks.js";
import {report} from "../act.js";
import {request, usePage} from "../api.js";
import {ExchangeFeatures} from "../features.js";
import {many, number, rate, visible} from "../format.js";
import {OBJECT_AGES, ObjectPast, rangeOf} from "../history.js";
import {html} from "../html.js";
import {Confirm, ExchangeLink, Failure, Name} from "../parts.js";
import {link, path} from "../route.js";
import {Arguments, Bind, BindingTable} from "./bindings.js";
import {Filter} from "./filter.js";
import {Publish} from "./message.js";
import {Where} from "./where.js";

const SECONDS = 5;
const MANY = 20;

export function Exchange(props) {
  const {route, user, setQuery} = props;
  const [, vhost, address] = route.parts;
  const {query} = route;
  const asked = new URLSearchParams({history: rangeOf(query, OBJECT_AGES), name: query.binding ?? ""});
  const {data: shown, error, refresh} = usePage(props, `burrowmq/pages/exchange/${path(vhost, address)}?${asked}`, SECONDS);
  const [isAsking, setAsking] = useState(false);
  if (!shown) return html`<${Failure} error=${error} />`;
  const {exchange, alternate, outgoing, incoming} = shown;
  const {name} = exchange;
  const {"alternate-exchange": _, ...others} = exchange.arguments;
  const isBuiltIn = !name || name.startsWith("amq.");
  const stat = (key) => (exchange.message_stats ? exchange.message_stats[`${key}_details`]?.rate : 0);
  const bindings = shown.outgoing_count + shown.incoming_count;
  return html`
    <${Failure} error=${error} />
    <p><${ExchangeFeatures} row=${exchange} /> ${exchange.type} exchange in virtual host <${Name} value=${vhost} /></p>
    <section class="figures" aria-label="Messages">
      <div><b>${rate(stat("publish_in"))}</b> in, ${number(exchange.message_stats?.publish_in ?? 0)} in all</div>
      <div><b>${rate(stat("publish_out"))}</b> out, ${number(exchange.message_stats?.publish_out ?? 0)} in all</div>
      <div><b>${name ? number(shown.outgoing_count) : "each queue"}</b> ${name ? "bound to it" : "by its name"}</div>
    </section>
    ${alternate ? html`<p class=${alternate.exists ? "" : "notice busy"}>What no binding takes goes to the alternate exchange <${ExchangeLink} vhost=${vhost} name=${alternate.name} />${" "}
      (by ${alternate.source === "policy" ? html`policy <a href=${link(["policies"], {vhost, name: exchange.policy})}><${Name} value=${exchange.policy} /></a>` : "its declaration"}).
      ${alternate.exists ? "" : " It does not exist: such messages are dropped."}</p>` : null}
    ${Object.keys(others).length ? html`<p>Arguments: <${Arguments} value=${others} /></p>` : null}
    <${Where} type=${exchange.type} ...${{vhost, name, user, query, setQuery}} />
    <h2>What it has routed</h2>
    <${ObjectPast} kind="exchange" history=${shown.history} query=${query} setQuery=${setQuery} />
    ${shown.outgoing_count + shown.incoming_count > MANY || query.binding ? html`<${Filter} label="Only bindings with" value=${query.binding} onFilter=${(binding) => setQuery({...query, binding})} />` : null}
    ${name ? html`<h2>Bindings from it</h2>
      <${BindingTable} caption="Bindings from it" side="destination" vhost=${vhost} bindings=${outgoing} count=${shown.outgoing_count} onDone=${refresh}
        empty="Nothing is bound to it: what is published to it is dropped, unless it has an alternate exchange." />
      <${Bind} vhost=${vhost} from=${name} onDone=${refresh} />
      <h2>Bindings to it</h2>
      <${BindingTable} caption="Bindings to it" side="source" vhost=${vhost} bindings=${incoming} count=${shown.incoming_count} onDone=${refresh}
        empty="No other exchange leads to it." />
      <${Bind} vhost=${vhost} to=${{kind: "exchange", name}} onDone=${refresh} />`
      : html`<p class="hint">Every queue is bound to it under its own name; nobody can change that.</p>`}
    <section class="actions">${exchange.internal ? html`<p class="hint">It is internal: only exchanges that are bound to it publish to it.</p>`
      : html`<${Publish} vhost=${vhost} exchange=${name} onDone=${refresh} />`}</section>
    ${isBuiltIn ? null : html`<p class="buttons"><button type="button" class="danger" onClick=${() => setAsking(true)}>Delete…</button></p>`}
    ${isAsking ? html`<${Confirm} title="Delete" action="Delete" word=${bindings > 1 ? name : null}
      onDo=${() => request("DELETE", `exchanges/${path(vhost, name)}`)} onClose=${(isDone) => {
        setAsking(false);
        if (isDone) {
          report(html`<${Name} value=${visible(name)} /> is deleted.`);
          location.hash = link(["exchanges"]);
        }
      }}><p>The exchange <${Name} value=${visible(name)} /> and ${bindings === 1 ? "one binding" : many(bindings, "bindings")} will be gone. Queues stay, and what is in them;
        who publishes to it then gets an error.</p></${Confirm}>` : null}`;
}
