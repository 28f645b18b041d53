// What the node was told: parameters, feature flags, and each key of the configuration with who set it.
import {useState} from "../vendor/hooks.js";
import {Outcome, fields, useAct} from "../act.js";
import {request, usePage, usePolled} from "../api.js";
import {visible} from "../format.js";
import {html} from "../html.js";
import {Confirm, Failure, Name, Table} from "../parts.js";
import {link, path} from "../route.js";
import {Filter} from "./filter.js";

const json = (value) => html`<code>${visible(JSON.stringify(value))}</code>`;

export function Parameters(props) {
  const globals = usePage(props, "global-parameters", 5);
  const found = usePolled("parameters", 5, props.isPaused);
  const [state, act] = useAct(globals.refresh);
  const [leaving, setLeaving] = useState(null);
  const set = (event) => {
    const {name, value} = fields(event);
    // As it is typed, once it is JSON: numbers that were parsed here may be others.
    act(async () => {
      JSON.parse(value);
      await request("PUT", `global-parameters/${path(name)}`, new Blob([`{"name":${JSON.stringify(name)},"value":${value}}`]));
    }, `${visible(name)} is set.`);
  };
  const columns = [
    {key: "name", title: "Name", cell: (row) => html`<${Name} value=${row.name} />`},
    {key: "value", title: "Value", cell: (row) => json(row.value)},
    {key: "do", title: "", wide: true, cell: (row) => html`<button type="button" class="danger" onClick=${() => setLeaving(row.name)}>Delete…</button>`},
  ];
  const own = [
    {key: "vhost", title: "Virtual host", cell: (row) => html`<${Name} value=${row.vhost} />`},
    {key: "component", title: "Component", cell: (row) => visible(row.component)},
    {key: "name", title: "Name", wide: true, cell: (row) => html`<${Name} value=${row.name} />`},
    {key: "value", title: "Value", wide: true, cell: (row) => json(row.value)},
    {key: "where", title: "Changed at", wide: true, cell: (row) => (row.component === "operator_policy" ? html`<a href=${link(["policies"], {vhost: row.vhost, name: row.name})}>Policies</a>`
      : row.component === "shovel" ? html`<a href=${link(["admin", "shovels"])}>Shovels</a>`
        : html`<a href=${link(["admin", "vhosts", row.vhost])}>its virtual host</a>`)},
  ];
  return html`<${Failure} error=${globals.error ?? found.error} />
    <h2>Global parameters</h2>
    ${globals.data ? html`<${Table} caption="Global parameters" columns=${columns} rows=${globals.data} keyOf=${(row) => row.name} query=${{}} empty="None is set." />` : null}
    <form class="filter" onSubmit=${set}><label>Name <input name="name" required /></label>
      <label>Value as JSON <input name="value" required placeholder='"text" or {"key": 1}' /></label><button type="submit">Set</button></form>
    <${Outcome} state=${state} />
    <h2>Parameters of virtual hosts</h2>
    ${found.data ? html`<${Table} caption="Parameters" columns=${own} rows=${found.data} keyOf=${(row) => `${row.vhost} ${row.component} ${row.name}`} query=${{}} empty="None is set." />` : null}
    ${leaving !== null ? html`<${Confirm} title="Delete" action="Delete" onDo=${() => request("DELETE", `global-parameters/${path(leaving)}`)} onClose=${() => {
      setLeaving(null);
      globals.refresh();
    }}><p>The global parameter <${Name} value=${leaving} /> will be gone.</p></${Confirm}>` : null}`;
}

export function Flags(props) {
  const flags = usePage(props, "feature-flags", 60);
  const deprecated = usePolled("deprecated-features", 60, props.isPaused);
  const columns = [
    {key: "name", title: "Name", cell: (row) => html`<code>${visible(row.name)}</code>`},
    {key: "state", title: "State", cell: (row) => visible(row.state)},
    {key: "desc", title: "What it is", wide: true, cell: (row) => visible(row.desc)},
  ];
  return html`<${Failure} error=${flags.error ?? deprecated.error} />
    <h2>Feature flags</h2>${flags.data ? html`<${Table} caption="Feature flags" columns=${columns} rows=${flags.data} keyOf=${(row) => row.name} query=${{}} />` : null}
    <h2>Deprecated elsewhere, and here to stay</h2>${deprecated.data ? html`<${Table} caption="Deprecated features" columns=${columns} rows=${deprecated.data} keyOf=${(row) => row.name} query=${{}} />` : null}`;
}

// What stands between backticks is what is typed.
function worded(text) {
  return visible(text, "").split("`").map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));
}

export function Configuration(props) {
  const {route, setQuery} = props;
  const found = usePage(props, "burrowmq/configuration", 60);
  if (!found.data) return html`<${Failure} error=${found.error} />`;
  const {rows, files} = found.data;
  const wanted = (route.query.name ?? "").toLowerCase();
  const shown = rows.filter((row) => (route.query.all || wanted || row.source) && `${row.key} ${row.doc}`.toLowerCase().includes(wanted));
  const given = rows.filter((row) => row.source).length;
  const columns = [
    {key: "key", title: "Key", cell: (row) => html`<code>${visible(row.key)}</code>`},
    {key: "value", title: "Value", cell: (row) => (row.value === null ? html`<span class="hint">not set</span>` : html`<code class="value">${visible(row.value)}</code>`)},
    {key: "source", title: "From", cell: (row) => (row.source ? html`<${Name} value=${row.source} />` : html`<span class="hint">default</span>`)},
    {key: "default", title: "Default", wide: true, cell: (row) => (row.default === null ? "" : html`<code class="value">${visible(row.default)}</code>`)},
    {key: "doc", title: "Meaning", wide: true, cell: (row) => html`${row.remark ? html`<strong>Without effect: ${visible(row.remark)}</strong> ` : ""}${worded(row.doc)}${row.ours ? html` <span class="hint">BurrowMQ's own</span>` : null}`},
  ];
  return html`<p>${files.length ? html`Read from ${files.map((name, at) => html`${at ? ", " : ""}<code key=${name}>${visible(name)}</code>`)}. ` : "No configuration file. "}
      ${given} of ${rows.length} keys were set; a change counts from the next start on.</p>
    <${Filter} value=${route.query.name} onFilter=${(name) => setQuery({...route.query, name})}>
      <label class="check"><input type="checkbox" checked=${Boolean(route.query.all)} onChange=${(event) => setQuery({...route.query, all: event.target.checked ? 1 : ""})} /> Defaults too</label></${Filter}>
    <${Table} caption="Configuration" columns=${columns} rows=${shown} keyOf=${(row) => row.key} query=${{}} empty=${wanted ? "No key is like this." : "Everything is as by default."} />`;
}
