// Why a queue is as it is: each setting in force, and where it comes from.
import {bytes, milliseconds, number, visible} from "../format.js";
import {html} from "../html.js";
import {ExchangeLink, Name} from "../parts.js";
import {link} from "../route.js";

export const TITLES = {
  "message-ttl": "Message TTL", "expires": "Expires", "max-length": "Max length", "max-length-bytes": "Max length in bytes",
  "overflow": "Overflow", "dead-letter-exchange": "Dead-letter exchange", "dead-letter-routing-key": "Dead-letter routing key",
  "queue-mode": "Mode", "queue-version": "Version of its files", "max-priority": "Max priority",
  "single-active-consumer": "Single active consumer", "consumer-timeout": "Consumer timeout", "delivery-limit": "Delivery limit",
  "dead-letter-strategy": "Dead-letter strategy", "max-age": "Max age", "quorum-initial-group-size": "Members to begin with", "initial-cluster-size": "Members to begin with",
};
export const SHOW = {"message-ttl": milliseconds, "expires": milliseconds, "consumer-timeout": milliseconds, "max-length": number, "max-length-bytes": bytes, "delivery-limit": number};
// What it means that there is none.
const NONE = {
  "message-ttl": "none: messages wait for ever", "expires": "never, used or not", "max-length": "no limit", "max-length-bytes": "no limit",
  "dead-letter-exchange": "none: what expires or is rejected is dropped", "max-priority": "none: first in, first out",
  "delivery-limit": "none: what comes back is delivered again", "max-age": "no limit", "single-active-consumer": "off: consumers take turns", "consumer-timeout": "none: an ack may take as long as it likes",
};

function Source({vhost, row}) {
  if (row.source === "argument") return html`the declaration`;
  return html`${row.source} <a href=${link(["policies"], {vhost, name: row.name})}><${Name} value=${row.name} /></a>`;
}

export function Settings({vhost, settings, defaults}) {
  return html`${settings.length ? html`<${InForce} ...${{vhost, settings}} />` : html`<p class="empty">Neither its declaration nor a policy says anything: no limit, no expiry, nothing dead-lettered.</p>`}
    <details><summary>By default</summary><dl>${defaults.map(({key, value}) => html`<dt key=${key}>${TITLES[key]}</dt>
      <dd>${value === null || value === false ? NONE[key] ?? "none" : typeof value === "number" && SHOW[key] ? SHOW[key](value) : visible(value)}</dd>`)}</dl></details>`;
}

function InForce({vhost, settings}) {
  return html`<table><caption class="unseen">Settings in force</caption><thead><tr><th scope="col">Setting</th><th scope="col">Value</th><th scope="col">From</th>
    <th scope="col">Overruled</th></tr></thead><tbody>${settings.map((row) => {
    const show = (value) => (SHOW[row.key] && typeof value === "number" ? SHOW[row.key](value) : visible(value));
    const value = row.key === "dead-letter-exchange" ? html`<${ExchangeLink} vhost=${vhost} name=${row.value} />` : show(row.value);
    return html`<tr key=${row.key}><td>${TITLES[row.key]}</td><td class="long" title=${String(row.value)}>${value}</td><td><${Source} vhost=${vhost} row=${row} /></td>
      <td class="long">${row.overruled.map((other, at) => html`${at ? ", " : ""}<s>${show(other.value)}</s> of <${Source} vhost=${vhost} row=${other} />`)}</td></tr>`;
  })}</tbody></table>`;
}
