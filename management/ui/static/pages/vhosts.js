// Virtual hosts: what is in each and how much may be; and one of them: who may do what in it.
import {useState} from "../vendor/hooks.js";
import {Outcome, fields, report, useAct} from "../act.js";
import {request, usePage} from "../api.js";
import {many, number, visible} from "../format.js";
import {html} from "../html.js";
import {Confirm, Failure, Name} from "../parts.js";
import {link, path} from "../route.js";
import {List, figure} from "./lists.js";
import {Limits, Matrix, Topics, VhostLink} from "./rights.js";

const LIMITS = [["max-connections", "Connections"], ["max-queues", "Queues"]];

function against(count, limit) {
  return limit === undefined || limit < 0 ? number(count) : html`${number(count)} <span class="hint">of ${number(limit)}</span>`;
}

export function Vhosts(props) {
  const [count, setCount] = useState(0);
  const columns = [
    {key: "name", title: "Name", sort: "name", cell: (row) => html`<${VhostLink} name=${row.name} />`},
    {key: "description", title: "Description", wide: true, cell: (row) => html`<${Name} value=${row.description} empty="–" />`},
    {key: "queues", title: "Queues", sort: "queues", figure: true, cell: (row) => against(row.queues, row.limits["max-queues"])},
    {key: "messages", title: "Messages", sort: "messages", figure: true, cell: figure("messages")},
    {key: "exchanges", title: "Exchanges", sort: "exchanges", figure: true, wide: true, cell: figure("exchanges")},
    {key: "connections", title: "Connections", sort: "connections", figure: true, wide: true, cell: (row) => against(row.connections, row.limits["max-connections"])},
    {key: "users", title: "Users", sort: "users", figure: true, wide: true, cell: figure("users")},
    {key: "tracing", title: "Tracing", wide: true, cell: (row) => (row.tracing ? "on" : "off")},
  ];
  return html`<${List} key=${count} kind="burrowmq/pages/vhosts" noun="virtual hosts" ...${props} columns=${columns} keyOf=${(row) => row.name} />
    <${AddVhost} onDone=${() => setCount(count + 1)} />`;
}

function AddVhost({onDone}) {
  const [state, act] = useAct(onDone);
  const add = (event) => {
    const {name, description} = fields(event);
    act(() => request("PUT", `vhosts/${path(name)}`, {description}), `${visible(name)} is there; you may do everything in it.`);
  };
  return html`<details><summary>Add a virtual host</summary><form onSubmit=${add}>
    <div class="fields"><label>Name <input name="name" required /></label><label>Description <input name="description" /></label></div>
    <${Outcome} state=${state} /><button type="submit" class="main" disabled=${state.isBusy}>Add</button></form></details>`;
}

export function Vhost(props) {
  const {name} = props;
  const found = usePage(props, `burrowmq/pages/vhosts/${path(name)}`, 5);
  const [leaving, setLeaving] = useState(false);
  const [state, act] = useAct(found.refresh);
  if (!found.data) return html`<${Failure} error=${found.error} />`;
  const {data, refresh} = found;
  const {vhost} = data;
  const change = (event) => {
    const {description, tags} = fields(event);
    act(() => request("POST", `burrowmq/vhosts/${path(name)}`, {description, tags}), "Changed.");
  };
  return html`<${Failure} error=${found.error} />
    <p>${vhost.description ? html`<${Name} value=${vhost.description} length=${200} />. ` : ""}${many(data.queues, "queues")} with ${many(vhost.messages, "messages")}. <a href=${link(["queues"], {vhost: name})}>Its queues</a>, <a href=${link(["exchanges"], {vhost: name})}>exchanges</a>, <a href=${link(["policies"], {vhost: name})}>policies</a>.</p>
    <h2>Who may do what in it</h2>
    <${Matrix} rows=${data.permissions} other="user" names=${data.users} vhost=${name} onDone=${refresh} />
    <h2>Routing keys, where an exchange is to be narrower</h2>
    <${Topics} rows=${data.topic_permissions} vhost=${name} names=${data.users} onDone=${refresh} />
    <h2>Limits</h2>
    <${Limits} kinds=${LIMITS} limits=${vhost.limits} where=${`vhost-limits/${path(name)}`} onDone=${refresh} />
    <details><summary>Change its description or tags</summary><form onSubmit=${change}>
      <div class="fields"><label>Description <input name="description" defaultValue=${vhost.description} /></label>
        <label>Tags <input name="tags" defaultValue=${vhost.tags.join(", ")} /></label></div><button type="submit" class="main">Save</button></form></details>
    <p><button type="button" aria-pressed=${vhost.tracing} onClick=${() => act(() => request("POST", `burrowmq/vhosts/${path(name)}`, {tracing: !vhost.tracing}), vhost.tracing ? "Tracing is off." : "Tracing is on.")}>
      Tracing: ${vhost.tracing ? "on" : "off"}</button> <span class="hint">copies every message to amq.rabbitmq.trace; it costs, and ends with a restart</span></p>
    <${Outcome} state=${state} />
    <p class="buttons"><button type="button" class="danger" onClick=${() => setLeaving(true)}>Delete…</button></p>
    ${leaving ? html`<${Confirm} title="Delete" action="Delete" word=${name} onDo=${() => request("DELETE", `vhosts/${path(name)}`)} onClose=${(isDone) => {
      setLeaving(false);
      if (isDone) {
        report(html`<${Name} value=${name} /> is deleted.`);
        location.hash = link(["admin", "vhosts"]);
      }
    }}><p>The virtual host <${Name} value=${name} /> will be gone with its ${many(data.queues, "queues")}, ${many(vhost.messages, "messages")} and ${many(data.permissions.length, "permissions")}; its connections will be closed.</p></${Confirm}>` : null}`;
}
