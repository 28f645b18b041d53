// Policies, and what one would do before it is saved.
import {useEffect, useRef, useState} from "../vendor/hooks.js";
import {request} from "../api.js";
import {DefinitionMarks} from "../features.js";
import {many, number, visible} from "../format.js";
import {html} from "../html.js";
import {Confirm, Failure, Mark, Name, QueueLink} from "../parts.js";
import {path} from "../route.js";
import {CHOICES, NUMBERS, TEXTS} from "./declare.js";
import {List, figure, text} from "./lists.js";

const KINDS = ["queues", "classic_queues", "quorum_queues", "streams", "exchanges", "all"];
// Priorities are for declarations alone.
const NUMBER_KEYS = NUMBERS.filter(([key]) => key !== "x-max-priority");
// Whether a key of a definition is in a field of its own: an empty text would be no text there.
const isIn = (fields, key) => fields.some(([name]) => name === `x-${key}`);
const isKnown = ([key, value]) => isIn(NUMBER_KEYS, key) || (value !== "" && isIn([...TEXTS, ...CHOICES], key));

const PREFIX = {policy: "policies", operator: "operator-policies"};
const NOUN = {policy: "policy", operator: "operator policy"};

function columns(edit, remove) {
  return [
    {key: "vhost", title: "Virtual host", sort: "vhost", wide: true, cell: text("vhost")},
    {key: "name", title: "Name", sort: "name", cell: text("name")},
    {key: "pattern", title: "Pattern", wide: true, cell: (row) => html`<code>${visible(row.pattern)}</code>`},
    {key: "apply", title: "Applies to", wide: true, cell: (row) => visible(row["apply-to"])},
    {key: "definition", title: "Definition", wide: true, cell: (row) => html`<${DefinitionMarks} definition=${row.definition} />`},
    {key: "priority", title: "Priority", sort: "priority", figure: true, cell: figure("priority")},
    {key: "in_force", title: "In force on", sort: "in_force", figure: true, wide: true, cell: figure("in_force")},
    {key: "outweighed", title: "Another wins on", sort: "outweighed", figure: true, wide: true, cell: (row) => (row.outweighed === null ? html`<${Mark} text="–" title="not counted: too many policies for so many queues" />` : number(row.outweighed))},
    ...(edit ? [{key: "do", title: "", wide: true, cell: (row) => html`<button type="button" onClick=${() => edit(row)}>Edit</button>
      <button type="button" class="danger" onClick=${() => remove(row)}>Delete…</button>`}] : []),
  ];
}

export function Policies(props) {
  const has = (...tags) => props.user.tags.some((tag) => tags.includes(tag));
  return html`<${Kind} ...${props} kind="policy" may=${has("administrator", "policymaker")}
      empty="No policy: one sets limits, expiry or dead-lettering for every queue whose name matches, and can be changed later." />
    <h2>Operator policies</h2>
    <${Kind} ...${props} kind="operator" may=${has("administrator")}
      empty="No operator policy: one sets limits that no policy and no declaration can exceed." />`;
}

function Kind({kind, may, empty, ...props}) {
  const [edited, setEdited] = useState(null);
  const [leaving, setLeaving] = useState(null);
  const [saved, setSaved] = useState(0);
  const keyOf = (row) => `${row.vhost} ${row.name}`;
  return html`<${List} key=${saved} kind=${`burrowmq/pages/${PREFIX[kind]}`} perVhost noun=${PREFIX[kind].replace("-", " ")} ...${props}
      columns=${columns(may ? setEdited : null, setLeaving)} keyOf=${keyOf} empty=${empty} />
    ${may ? html`<${Form} key=${edited ? keyOf(edited) : ""} kind=${kind} vhost=${props.vhost || "/"} row=${edited}
      onSaved=${() => setSaved(saved + 1)} onCancel=${() => setEdited(null)} />` : null}
    ${leaving ? html`<${Confirm} title="Delete" action="Delete" onDo=${() => request("DELETE", `${PREFIX[kind]}/${path(leaving.vhost, leaving.name)}`)}
      onClose=${(isDone) => {
        setLeaving(null);
        if (isDone) setSaved(saved + 1);
      }}><p>The ${NOUN[kind]} <${Name} value=${leaving.name} /> will be gone; the queues it is in force on go on without it.</p></${Confirm}>` : null}`;
}

function asked(form) {
  const definition = form.get("others") ? JSON.parse(form.get("others")) : {};
  for (const [key] of NUMBER_KEYS) if (form.get(key) !== "") definition[key.slice(2)] = Number(form.get(key));
  for (const [key] of [...TEXTS, ...CHOICES]) if (form.get(key)) definition[key.slice(2)] = form.get(key);
  return {name: form.get("name"), pattern: form.get("pattern"), "apply-to": form.get("apply-to"), priority: Number(form.get("priority")), definition};
}

function Form({kind, vhost, row, onSaved, onCancel}) {
  const form = useRef(null);
  const [isOpen, setOpen] = useState(Boolean(row));
  const [preview, setPreview] = useState(null);
  const [state, setState] = useState({});
  const [typed, setTyped] = useState(0);
  const was = row?.definition ?? {};
  const others = Object.fromEntries(Object.entries(was).filter((entry) => !isKnown(entry)));
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const given = new FormData(form.current);
        if (!given.get("pattern") && !given.get("name")) return;
        setPreview(await request("POST", `burrowmq/pages/policy-preview/${path(given.get("vhost"))}`, {...asked(given), is_operator: kind === "operator"}, stop.signal));
        setState({});
      } catch (error) {
        if (!stop.signal.aborted) setState({error: error instanceof SyntaxError ? {status: 0, message: error.message} : error});
      }
    }, 250);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [typed]);
  useEffect(() => {
    if (row) form.current.elements.pattern.focus();
  }, []);
  const save = async (event) => {
    event.preventDefault();
    try {
      const given = new FormData(form.current);
      const {name, ...body} = asked(given);
      await request("PUT", `${PREFIX[kind]}/${path(given.get("vhost"), name)}`, body);
      setState({done: name});
      onSaved();
    } catch (error) {
      setState({error: error instanceof SyntaxError ? {status: 0, message: error.message} : error});
    }
  };
  return html`<details open=${isOpen} onToggle=${(event) => setOpen(event.target.open)}><summary>${row ? html`Change <${Name} value=${row.name} />` : `Add ${kind === "policy" ? "a policy" : "an operator policy"}`}</summary>
    ${isOpen ? html`<form ref=${form} onSubmit=${save} onInput=${() => setTyped(typed + 1)}>
    <div class="fields">
      <label>Name <input name="name" required defaultValue=${row?.name} readOnly=${Boolean(row)} /></label>
      <label>Virtual host <input name="vhost" required defaultValue=${row?.vhost ?? vhost} readOnly=${Boolean(row)} /></label>
      <label>Pattern <input name="pattern" required defaultValue=${row?.pattern} /><span class="hint">a regular expression, found anywhere in the name</span></label>
      <label>Applies to <select name="apply-to">${KINDS.map((kind) => html`<option key=${kind} selected=${kind === (row?.["apply-to"] ?? "queues")}>${kind}</option>`)}</select></label>
      <label>Priority <input name="priority" type="number" defaultValue=${row?.priority ?? 0} /><span class="hint">of several that match, the highest holds</span></label>
      ${NUMBER_KEYS.map(([key, title, hint]) => html`<label key=${key}>${title} <input name=${key} type="number" min="0" defaultValue=${was[key.slice(2)]} /><span class="hint">${hint}</span></label>`)}
      ${TEXTS.map(([key, title, hint]) => html`<label key=${key}>${title} <input name=${key} defaultValue=${was[key.slice(2)]} /><span class="hint">${hint}</span></label>`)}
      ${CHOICES.map(([key, title, values, hint]) => html`<label key=${key}>${title} <select name=${key}><option value="">not set</option>
        ${values.map((value) => html`<option key=${value} selected=${value === was[key.slice(2)]}>${value}</option>`)}</select><span class="hint">${hint}</span></label>`)}
      <label>Other keys as JSON <input name="others" defaultValue=${Object.keys(others).length ? JSON.stringify(others) : ""} /><span class="hint">empty texts, too: {"dead-letter-exchange": ""} is the default exchange</span></label>
    </div>
    <${Preview} vhost=${row?.vhost ?? vhost} found=${preview} />
    <${Failure} error=${state.error} />
    ${state.done ? html`<p class="notice good" role="status">${visible(state.done)} is in force.</p>` : null}
    <button type="submit" class="main">Save</button> ${row ? html`<button type="button" onClick=${onCancel}>Cancel</button>` : null}</form>` : null}</details>`;
}

function Preview({vhost, found}) {
  if (!found) return null;
  const about = found.is_about ? "about " : "";
  const lost = found.dropped ? html` <strong>${about}${many(found.dropped, "ready messages")}, the oldest of each queue, would be dropped by its maximum length.</strong>` : null;
  return html`<div class=${found.dropped ? "notice busy" : "notice"} role="status">
    It matches ${many(found.matched, "queues")}, and would be in force on ${number(found.in_force)}.${lost}
    ${found.exchanges ? ` It matches ${many(found.exchanges, "exchanges")}.` : ""}
    ${found.matches.length ? html`<table><caption class="unseen">Queues that match</caption><tbody>${found.matches.map((row) => html`<tr key=${row.name}>
      <td><${QueueLink} vhost=${vhost} name=${row.name} /></td>
      <td>${row.overruled_by === null ? "" : html`<${Name} value=${row.overruled_by} /> holds instead`}</td>
      <td class="figure">${row.dropped ? `${row.is_about ? "about " : ""}${number(row.dropped)} of ${number(row.ready)} dropped` : ""}</td>
      <td>${row.dropped ? (row.dead_letters_to ? html`to <${Name} value=${row.dead_letters_to} />` : "for good") : ""}</td></tr>`)}</tbody></table>` : null}
    ${found.matched > found.matches.length ? html`<p class="hint">The first ${found.matches.length} are shown.</p>` : null}</div>`;
}
