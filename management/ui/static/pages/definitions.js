// Everything that lasts but messages, as a file: taken away, and brought back after a look at what that would change.
import {useEffect, useState} from "../vendor/hooks.js";
import {Outcome, useAct} from "../act.js";
import {request, requestText} from "../api.js";
import {number, visible} from "../format.js";
import {html} from "../html.js";
import {Name, Table} from "../parts.js";
import {path} from "../route.js";

const ACTIONS = [
  ["new", "made"], ["changed", "changed"], ["stays", "stay as they are, though the file says otherwise"],
  ["refused", "cannot be taken over"], ["same", "as they are already"],
];
const words = (section) => section.replace("_", " ");

export function Definitions({user, vhost, setSeen}) {
  const [found, setFound] = useState(null);
  const [exported, actExport] = useAct();
  const [state, act] = useAct();
  useEffect(() => setSeen({}), []);
  if (!user.tags.includes("administrator")) return html`<p class="empty">Definitions are for users with the tag administrator.</p>`;
  const where = vhost ? `/${path(vhost)}` : "";
  const save = () => actExport(async () => {
    offer(await requestText("GET", `definitions${where}`), `definitions${vhost ? `-${vhost.replace(/\W+/g, "_")}` : ""}.json`);
  }, "The file is in your downloads. It has hashes of passwords: keep it like one.");
  const look = (event) => {
    const file = event.target.files[0];
    setFound(null);
    if (file) act(async () => {
      // As it is when it was looked at: the file may change, and JSON that was parsed here has other numbers.
      const document = new Blob([await file.text()]);
      JSON.parse(await document.text());
      setFound({name: file.name, document, ...await request("POST", `burrowmq/definitions-diff${where}`, document)});
    });
  };
  const bring = () => act(async () => {
    await request("POST", `definitions${where}`, found.document);
    setFound(null);
  }, html`<${Name} value=${found.name} /> was taken over.`);
  return html`<p>Users, virtual hosts, permissions, policies, parameters, queues, exchanges and bindings ${vhost ? html`of virtual host <${Name} value=${vhost} />` : "of the node"}; no messages.
      ${vhost ? "" : " The virtual host chosen on the left narrows it."}</p>
    <h2>Export</h2><button type="button" class="main" onClick=${save}>Save as a file</button><${Outcome} state=${exported} />
    <h2>Import</h2><label>File <input type="file" accept=".json,application/json" onChange=${look} /></label>
    <p class="hint">Nothing is done yet when a file is chosen: first it is shown what it would change.</p>
    <${Outcome} state=${state} />
    ${found ? html`<${Changes} found=${found} isBusy=${state.isBusy} onDo=${bring} />` : null}`;
}

function Changes({found, isBusy, onDo}) {
  const sections = Object.entries(found.sections);
  const count = (action) => sections.reduce((sum, [, counts]) => sum + (counts[action] ?? 0), 0);
  const columns = [
    {key: "section", title: "What", cell: (row) => words(row.section)},
    {key: "name", title: "Name", cell: (row) => html`<${Name} value=${row.name} />`},
    {key: "action", title: "Becomes", cell: (row) => html`<span class=${`state ${row.action}`}>${row.action}</span>`},
    {key: "before", title: "Now", wide: true, cell: (row) => values(row.before)},
    {key: "after", title: "In the file", wide: true, cell: (row) => (row.reason ? visible(row.reason) : values(row.after))},
  ];
  return html`<section aria-label="What it would change"><h2>What <${Name} value=${found.name} /> would change</h2>
    <ul>${ACTIONS.filter(([action]) => count(action)).map(([action, title]) => html`<li key=${action}><b>${number(count(action))}</b> ${title} <span class="hint">${sections.filter(([, counts]) => counts[action]).map(([section, counts]) => `${number(counts[action])} ${words(section)}`).join(", ")}</span></li>`)}</ul>
    ${found.rows.length ? html`<${Table} caption="Changes" columns=${columns} rows=${found.rows} keyOf=${(row) => `${row.section} ${row.name} ${found.rows.indexOf(row)}`} query=${{}} />` : html`<p class="empty">Nothing would change.</p>`}
    ${found.total > found.rows.length ? html`<p class="hint">The first ${number(found.rows.length)} of ${number(found.total)} are shown.</p>` : null}
    ${count("new") + count("changed") ? html`<p class="buttons">An import goes entry by entry: what came before one that is refused stays.
      <button type="button" class="main" disabled=${isBusy} onClick=${onDo}>Take it over</button></p>` : null}</section>`;
}

function values(row) {
  return Object.entries(row).map(([key, value]) => html`<div key=${key}><span class="hint">${visible(key)}</span> <code>${visible(JSON.stringify(value))}</code></div>`);
}

// A file for the person: nothing of it leaves the browser but as a download.
function offer(text, name) {
  const anchor = document.createElement("a");
  anchor.href = URL.createObjectURL(new Blob([text], {type: "application/json"}));
  anchor.download = name;
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(anchor.href), 10000);
}
