// The servers that keep quorum queues, on the node's page; nothing where there are none. The node asks each of them: not too often.
import {usePolled} from "../api.js";
import {many, moment, number, visible} from "../format.js";
import {html} from "../html.js";
import {Failure} from "../parts.js";

const SECONDS = 15;

export function Cluster({isPaused}) {
  const {data, error} = usePolled("burrowmq/cluster", SECONDS, isPaused);
  if (error) return html`<${Failure} error=${error} />`;
  if (!data) return null;
  const {link, servers, queues} = data;
  return html`<h2>Quorum queue servers</h2>
    <p>${link.state === "connected" ? html`Connected to <code>${visible(link.server)}</code> (${visible(link.address)}) since ${moment(new Date(link.since))}`
      : html`<strong class="bad">Out of reach</strong> since ${moment(new Date(link.since))}${link.reason ? `: ${visible(link.reason)}` : ""}`}; connections made: ${number(link.connections)}.</p>
    <p>${many(queues.total - queues.streams, "quorum queues")}${queues.streams ? `, ${many(queues.streams, "streams")}` : ""}${queues.with_minimum_quorum ? html`, <strong class="bad">${number(queues.with_minimum_quorum)} would stand still with one server less</strong>` : ""}${queues.without_quorum
        ? html`, <strong class="bad">${number(queues.without_quorum)} without quorum</strong>` : ""}.</p>
    <table><caption class="unseen">Quorum queue servers</caption><thead><tr><th scope="col">Server</th><th scope="col">Address</th><th scope="col">State</th>
      <th scope="col">Version</th><th scope="col" class="figure">Leads</th><th scope="col" class="figure">Keeps</th></tr></thead><tbody>
    ${servers.map((row) => html`<tr key=${row.address + row.name}><td>${visible(row.name, "not known")}</td><td>${visible(row.address, "not known")}</td>
      <td><span class=${`state ${row.is_up ? "good" : "bad"}`}>${row.is_up ? "up" : `down: ${visible(row.reason)}`}</span></td>
      <td>${visible(row.version, "–")}</td><td class="figure">${number(row.queues_led)}</td><td class="figure">${number(row.queues_kept)}</td></tr>`)}</tbody></table>`;
}
