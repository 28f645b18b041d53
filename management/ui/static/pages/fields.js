// Headers and arguments as people give them: a name, a type, a value.
import {useState} from "../vendor/hooks.js";
import {html} from "../html.js";

const TYPES = [["text", "text"], ["number", "number"], ["boolean", "true or false"], ["json", "list or object (JSON)"]];

function typeOf(value) {
  if (typeof value === "string") return "text";
  return typeof value === "object" ? "json" : typeof value;
}

export class Unfit extends Error {
  status = 0;
}

export function useFields(initial = {}) {
  const rows = () => Object.entries(initial).map(([name, value]) => ({
    name, type: typeOf(value), value: typeOf(value) === "json" ? JSON.stringify(value) : String(value),
  }));
  return useState(rows);
}

// The object that rows stand for. Throws Unfit.
export function objectOf(rows) {
  const found = {};
  for (const {name, type, value} of rows) {
    if (!name) {
      if (value) throw new Unfit(`The value ${value} has no name.`);
      continue;
    }
    found[name] = valueOf(name, type, value);
  }
  return found;
}

function valueOf(name, type, value) {
  if (type === "text") return value;
  if (type === "boolean") return value === "true";
  if (type === "number") {
    const given = Number(value);
    if (value.trim() === "" || !Number.isFinite(given)) throw new Unfit(`${name}: ${value || "nothing"} is no number.`);
    if (Number.isInteger(given) && !Number.isSafeInteger(given)) throw new Unfit(`${name}: ${value} is more than a browser can count.`);
    return given;
  }
  try {
    return JSON.parse(value);
  } catch (error) {
    throw new Unfit(`${name} is no JSON: ${error.message}`);
  }
}

export function Fields({legend, hint, rows, setRows}) {
  const change = (at, what) => setRows(rows.map((row, index) => (index === at ? {...row, ...what} : row)));
  return html`<fieldset class="typed"><legend>${legend}</legend>
    ${hint ? html`<p class="hint">${hint}</p>` : null}
    ${rows.map((row, at) => html`<div class="row" key=${at}>
      <input aria-label=${`${legend}: name ${at + 1}`} placeholder="name" value=${row.name} onInput=${(event) => change(at, {name: event.target.value})} />
      <select aria-label=${`${legend}: type ${at + 1}`} value=${row.type} onChange=${(event) => change(at, {type: event.target.value, value: event.target.value === "boolean" ? "true" : row.value})}>
        ${TYPES.map(([key, title]) => html`<option key=${key} value=${key}>${title}</option>`)}</select>
      ${row.type === "boolean" ? html`<select aria-label=${`${legend}: value ${at + 1}`} value=${row.value} onChange=${(event) => change(at, {value: event.target.value})}><option>true</option><option>false</option></select>`
        : html`<input aria-label=${`${legend}: value ${at + 1}`} placeholder="value" value=${row.value}
          inputmode=${row.type === "number" ? "decimal" : undefined} onInput=${(event) => change(at, {value: event.target.value})} />`}
      <button type="button" aria-label=${`${legend}: remove ${at + 1}`} onClick=${() => setRows(rows.filter((_, index) => index !== at))}>Remove</button></div>`)}
    <button type="button" onClick=${() => setRows([...rows, {name: "", type: "text", value: ""}])}>Add ${rows.length ? "another" : "one"}</button></fieldset>`;
}
