// What a queue is, in short marks with words behind them.
import {html} from "./html.js";
import {Mark} from "./parts.js";
import {link} from "./route.js";
import {milliseconds, number, short, visible} from "./format.js";

const SETTINGS = [
  ["message-ttl", "TTL", "messages expire"], ["expires", "Exp", "the queue expires when it is not used"],
  ["max-length", "Lim", "at most so many messages"], ["max-length-bytes", "LimB", "at most so many bytes"],
  ["overflow", "Ovfl", "what happens at the limit"], ["dead-letter-exchange", "DLX", "dead letters go to"],
  ["dead-letter-routing-key", "DLK", "dead letters get the key"], ["max-priority", "Pri", "priorities up to"],
  ["single-active-consumer", "SAC", "one consumer at a time"], ["queue-mode", "lazy", "the mode is"], ["delivery-limit", "DlL", "deliveries of a message at most"],
  ["dead-letter-strategy", "DLS", "dead letters go"], ["max-age", "Age", "messages go after"],
];
const TIMES = new Set(["message-ttl", "expires"]);

// What a queue's state looks like; the word says it too.
export function stateClass(state) {
  return `state ${{running: "good", idle: ""}[state] ?? "bad"}`;
}

// A policy's keys, each with its value; a key without words of its own is its own word.
export function DefinitionMarks({definition}) {
  return html`<span class="marks">${Object.entries(definition).map(([key, value]) => {
    const [, text, words] = SETTINGS.find(([each]) => each === key) ?? [key, key, "the key"];
    return html`<${Mark} key=${key} text=${`${visible(text)} ${shown(key, value)}`} title=${`${words}: ${visible(value)} (${visible(key)})`} />`;
  })}</span>`;
}

function shown(key, value) {
  if (typeof value === "number") return TIMES.has(key) ? milliseconds(value) : number(value);
  return short(typeof value === "object" ? JSON.stringify(value) : value, 32);
}

export function ExchangeFeatures({row}) {
  const found = [];
  if (row.durable) found.push(html`<${Mark} key="D" text="D" title="durable: survives a restart" />`);
  if (row.auto_delete) found.push(html`<${Mark} key="AD" text="AD" title="deleted with its last binding" />`);
  if (row.internal) found.push(html`<${Mark} key="I" text="I" title="internal: gets messages from other exchanges only" />`);
  const alternate = row.arguments?.["alternate-exchange"];
  if (alternate !== undefined) {
    found.push(html`<${Mark} key="AE" text="AE" title=${`what it cannot route goes to the exchange: ${visible(alternate)}`} />`);
  }
  if (row.policy) {
    found.push(html`<a key="Pol" class="mark" href=${link(["policies"], {vhost: row.vhost, name: row.policy})}
      title=${`policy ${visible(row.policy)}`}>Pol</a>`);
  }
  return html`<span class="marks">${found}</span>`;
}

export function Features({row}) {
  const found = [];
  if (row.durable) found.push(html`<${Mark} key="D" text="D" title="durable: survives a restart" />`);
  if (row.auto_delete) found.push(html`<${Mark} key="AD" text="AD" title="deleted with its last consumer" />`);
  if (row.exclusive) found.push(html`<${Mark} key="Excl" text="Excl" title="of one connection only, deleted with it" />`);
  const policy = row.effective_policy_definition ?? {};
  for (const [key, text, words] of SETTINGS) {
    const own = row.arguments?.[`x-${key}`];
    const value = own ?? policy[key];
    if (value === undefined || (key === "queue-mode" && value !== "lazy")) continue;
    const from = own === undefined ? "set by policy" : "set by the declaration";
    found.push(html`<${Mark} key=${text} text=${text} quiet=${own === undefined} title=${`${words}: ${visible(value)} (${from})`} />`);
  }
  if (row.policy) {
    found.push(html`<a key="Pol" class="mark" href=${link(["policies"], {vhost: row.vhost, name: row.policy})}
      title=${`policy ${visible(row.policy)}`}>Pol</a>`);
  }
  return html`<span class="marks">${found}</span>`;
}

// Of those that keep a queue, how many its leader hears; nothing for a classic queue.
export function Members({row}) {
  if (!row.members?.length) return null;
  const gone = row.members.filter((name) => !row.online.includes(name));
  const text = `${row.online.length} of ${row.members.length}`;
  if (!gone.length) return text;
  return html`<${Mark} text=${text} title=${`not online: ${gone.map((name) => visible(name)).join(", ")}`} />`;
}

// The same in a sentence.
export function Placement({row}) {
  if (!row.members?.length) return null;
  const gone = row.members.filter((name) => !row.online.includes(name));
  return html`<p>Kept by ${list(row.members)}; ${row.leader ? html`<code>${visible(row.leader)}</code> leads` : html`<strong class="bad">nobody leads</strong>: it takes and gives nothing until they have elected one`}${gone.length
    ? html`. <strong class="bad">Not online: ${list(gone)}</strong>` : ""}</p>`;
}

function list(names) {
  return names.map((name, at) => html`${at ? (at === names.length - 1 ? " and " : ", ") : ""}<code key=${name}>${visible(name)}</code>`);
}
