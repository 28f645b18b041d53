// The servers that keep quorum queues, on the node's page; nothing where there are none. The node asks each of them: not too often.
import {usePolled} from "../api.js";
import {many, moment, number, visible} from "../format.js";
import {html} from "../html.js";
import {Failure, Table} from "../parts.js";

const SECONDS = 15;
const SERVERS = [
  {key: "name", title: "Server", cell: (row) => visible(row.name, "not known")},
  {key: "address", title: "Address", wide: true, cell: (row) => visible(row.address, "not known")},
  {key: "state", title: "State", cell: (row) => html`<span class=${`state ${row.is_up ? "good" : "bad"}`}>${row.is_up ? "up" : `down: ${visible(row.reason)}`}</span>`},
  {key: "version", title: "Version", wide: true, cell: (row) => visible(row.version, "–")},
  {key: "leads", title: "Leads", figure: true, cell: (row) => number(row.queues_led)},
  {key: "keeps", title: "Keeps", figure: true, cell: (row) => number(row.queues_kept)},
];

export function Cluster({isPaused}) {
  const {data, error} = usePolled("burrowmq/cluster", SECONDS, isPaused);
  if (error) return html`<${Failure} error=${error} />`;
  if (!data) return null;
  const {link, servers, queues} = data;
  return html`<h2>Quorum queue servers</h2>
    <p>${link.state === "connected" ? html`Connected to <code>${visible(link.server)}</code> (${visible(link.address)}) since ${moment(new Date(link.since))}`
      : html`<strong class="bad">Out of reach</strong> since ${moment(new Date(link.since))}${link.reason ? `: ${visible(link.reason)}` : ""}`}; connections made: ${number(link.connections)}.</p>
    ${link.refused.map((text) => html`<p><strong class="bad">Refused by the servers</strong>: ${visible(text)}</p>`)}
    <p>${many(queues.total - queues.streams, "quorum queues")}${queues.streams ? `, ${many(queues.streams, "streams")}` : ""}${queues.with_minimum_quorum ? html`, <strong class="bad">${number(queues.with_minimum_quorum)} would stand still with one server less</strong>` : ""}${queues.without_quorum
        ? html`, <strong class="bad">${number(queues.without_quorum)} without quorum</strong>` : ""}.</p>
    <${Shared} ...${link} />
    <${Table} caption="Quorum queue servers" columns=${SERVERS} rows=${servers} keyOf=${(row) => row.address + row.name} query=${{}} empty="None is known." />`;
}

// What this front-end has together with others, and what each has of its own.
function Shared({definitions, classic_queues: homes}) {
  if (!definitions || !homes) return null;
  return html`<p>${many(definitions.shared, "definitions")} shared with other front-ends${definitions.state === "agreed" ? "" : html`, <strong class="bad">as they were known last</strong>: what others change is not heard of`}${definitions.waiting
    ? `; ${many(definitions.waiting, "changes")} of them wait for the servers` : ""}${definitions.here_alone.length ? html`, <strong class="bad">${many(definitions.here_alone.length, "more")} here alone</strong>: ${visible(definitions.here_alone[0].reason)}` : ""}. Classic queues and reply consumers: ${number(homes.here)} here, ${number(homes.elsewhere)} at others.</p>`;
}
