// Users: who may log in; and one of them: tags, password, limits, what it may do where.
import {useState} from "../vendor/hooks.js";
import {Outcome, fields, report, useAct} from "../act.js";
import {request, usePage} from "../api.js";
import {number, visible} from "../format.js";
import {html} from "../html.js";
import {Confirm, Failure, Name} from "../parts.js";
import {link, path} from "../route.js";
import {List, figure} from "./lists.js";
import {Limits, Matrix, Topics} from "./rights.js";

const TAGS = [
  ["administrator", "everything"], ["monitoring", "sees everything, changes what its permissions allow"],
  ["policymaker", "policies too"], ["management", "what its permissions allow"],
];
const LIMITS = [["max-connections", "Connections"], ["max-channels", "Channels"]];

export function Users(props) {
  const [count, setCount] = useState(0);
  const columns = [
    {key: "name", title: "Name", sort: "name", cell: (row) => html`<a href=${link(["admin", "users", row.name])}><${Name} value=${row.name} /></a>`},
    {key: "tags", title: "Tags", cell: (row) => html`<span class="long">${visible(row.tags.join(", "), "none: cannot use this page")}</span>`},
    {key: "password", title: "Password", wide: true, cell: (row) => (row.has_password ? "set" : "none: no password logs in")},
    {key: "vhosts", title: "Virtual hosts", sort: "vhosts", figure: true, cell: (row) => number(row.vhosts) + (row.vhosts ? "" : " ⚠")},
    {key: "connections", title: "Connections", sort: "connections", figure: true, wide: true, cell: figure("connections")},
    {key: "limits", title: "Limits", wide: true, cell: (row) => visible(Object.entries(row.limits).map(([key, value]) => `${key} ${value}`).join(", "), "none")},
  ];
  return html`<${List} key=${count} kind="burrowmq/pages/users" noun="users" ...${props} columns=${columns} keyOf=${(row) => row.name} />
    <p class="hint">⚠ without a permission in any virtual host a user cannot connect.</p>
    <${AddUser} onDone=${() => setCount(count + 1)} />`;
}

function AddUser({onDone}) {
  const [state, act] = useAct(onDone);
  const add = (event) => {
    const form = fields(event);
    act(() => request("PUT", `users/${path(form.name)}`, {tags: tagsOf(event.target), ...passwordOf(form)}), `${visible(form.name)} is there. Give it permissions on its own page.`);
  };
  return html`<details><summary>Add a user</summary><form onSubmit=${add} autocomplete="off">
    <div class="fields"><label>Name <input name="name" required /></label></div>
    <${Password} isNew />
    <${Tags} chosen=${[]} />
    <${Outcome} state=${state} /><button type="submit" class="main" disabled=${state.isBusy}>Add</button></form></details>`;
}

function Tags({chosen}) {
  const known = TAGS.map(([tag]) => tag);
  return html`<fieldset><legend>Tags: what it may do on this page and in the HTTP API</legend>
    ${TAGS.map(([tag, words]) => html`<label key=${tag} class="check"><input type="checkbox" name="tag" value=${tag} defaultChecked=${chosen.includes(tag)} /> ${tag}
      <span class="hint">${words}</span></label>`)}
    <label>Other tags <input name="others" defaultValue=${chosen.filter((tag) => !known.includes(tag)).join(", ")} /></label></fieldset>`;
}

function tagsOf(form) {
  const data = new FormData(form);
  return [...data.getAll("tag"), ...data.get("others").split(",").map((tag) => tag.trim()).filter(Boolean)];
}

function Password({isNew}) {
  return html`<fieldset><legend>Password</legend><div class="fields">
    <label>${isNew ? "Password" : "New password"} <input name="password" type="password" autocomplete="new-password" /></label>
    <label>or its hash <input name="hash" autocomplete="off" /><span class="hint">as rabbitmqctl hash_password prints it</span></label></div>
    <label class="check"><input type="checkbox" name="none" /> none: no password logs in, a certificate may</label></fieldset>`;
}

function passwordOf({password, hash, none}) {
  const given = [password, hash, none].filter(Boolean).length;
  if (given !== 1) throw {status: 0, message: "Give one of: a password, a hash, none."};
  return password ? {password} : {password_hash: hash ?? ""};
}

export function User(props) {
  const {name, user} = props;
  const found = usePage(props, `burrowmq/pages/users/${path(name)}`, 5);
  const [leaving, setLeaving] = useState(false);
  if (!found.data) return html`<${Failure} error=${found.error} />`;
  const {data, refresh} = found;
  const isSelf = name === user.name;
  return html`<${Failure} error=${found.error} />
    <p class="long">${data.user.tags.length ? html`Tagged ${visible(data.user.tags.join(", "))}` : "No tag: it cannot use this page"}; ${data.user.has_password ? `logs in with a password (${data.user.algorithm})` : "no password logs in"}.${data.permissions.length ? null : html` <strong>It may enter no virtual host, so it cannot connect.</strong>`}</p>
    <h2>What it may do where</h2>
    <${Matrix} rows=${data.permissions} other="vhost" names=${data.vhosts} user=${name} onDone=${refresh} />
    <h2>Routing keys, where an exchange is to be narrower</h2>
    <${Topics} rows=${data.topic_permissions} user=${name} names=${data.vhosts} onDone=${refresh} />
    <h2>Limits</h2>
    <${Limits} kinds=${LIMITS} limits=${data.user.limits} where=${`user-limits/${path(name)}`} onDone=${refresh} />
    <${Change} key=${data.user.tags.join()} name=${name} tags=${data.user.tags} onDone=${refresh} />
    <p class="buttons"><button type="button" class="danger" onClick=${() => setLeaving(true)}>Delete…</button></p>
    ${leaving ? html`<${Confirm} title="Delete" action="Delete" word=${isSelf ? name : null} onDo=${() => request("DELETE", `users/${path(name)}`)} onClose=${(isDone) => {
      setLeaving(false);
      if (isDone) {
        report(html`<${Name} value=${name} /> is deleted.`);
        location.hash = link(["admin", "users"]);
      }
    }}><p>The user <${Name} value=${name} /> and its ${number(data.permissions.length)} permissions will be gone, its connections closed.
      ${isSelf ? html` <strong>This is you: you will be logged out.</strong>` : null}</p></${Confirm}>` : null}`;
}

function Change({name, tags, onDone}) {
  const [state, act] = useAct(onDone);
  const change = (event) => {
    const form = fields(event);
    const wanted = tagsOf(event.target);
    act(async () => {
      let password;
      if (form.password || form.hash || form.none) password = passwordOf(form);
      else {
        const was = await request("GET", `users/${path(name)}`);
        password = {password_hash: was.password_hash, hashing_algorithm: was.hashing_algorithm};
      }
      await request("PUT", `users/${path(name)}`, {tags: wanted, ...password});
    }, "Changed.");
  };
  return html`<details><summary>Change tags or password</summary><form onSubmit=${change} autocomplete="off">
    <${Tags} chosen=${tags} /><${Password} /><p class="hint">An empty password field leaves the password as it is.</p>
    <${Outcome} state=${state} /><button type="submit" class="main" disabled=${state.isBusy}>Save</button></form></details>`;
}
