// Who is connected: as what, from where, and why one stands still.
import {useState} from "../vendor/hooks.js";
import {request, usePage} from "../api.js";
import {bytes, many, moment, noun, number, visible} from "../format.js";
import {OBJECT_AGES, ObjectPast, rangeOf} from "../history.js";
import {html} from "../html.js";
import {Ago, Confirm, Failure, Mark, Name, Pages, Since, Table, useFirstPage} from "../parts.js";
import {link, path} from "../route.js";
import {CHANNEL_COLUMNS, peer} from "./channels.js";
import {Filter} from "./filter.js";

const SECONDS = 5;
// A client that is told to close has answered by then.
const AGAIN_MS = 500;

export function Clients(props) {
  const {kind, noun, columns, keyOf, empty, hint, select, children, route: {query}, vhost, setQuery} = props;
  const asked = {page: query.page || 1, page_size: 100, text: query.text, sort: query.sort, sort_reverse: query.desc ? "true" : ""};
  const kept = Object.entries(asked).filter(([, value]) => value);
  const {data, error, refresh} = usePage(props, `burrowmq/pages/${kind}${vhost ? "/" + path(vhost) : ""}?${new URLSearchParams(kept)}`, SECONDS);
  useFirstPage(error, props.route);
  return html`<${Filter} value=${query.text} hint=${hint} onFilter=${(text) => setQuery({...query, text, page: ""})}>${children?.(refresh)}</${Filter}>
    <${Failure} error=${error} />
    ${data ? html`<${Table} caption=${noun} rows=${data.items} ...${{columns, keyOf, query, setQuery, select}} empty=${query.text ? `No ${noun} of this kind.` : empty} />
      <${Pages} page=${data.page} pageCount=${data.page_count} filtered=${data.filtered_count} total=${data.total_count} ...${{noun, query, setQuery}} />` : null}`;
}

export function State({row}) {
  if (!row.hindrances.length) return html`<span class=${row.state === "running" ? "state good" : "state"}>${visible(row.state)}</span>`;
  const words = row.hindrances.map((each) => each.text).join(" ");
  const since = Math.min(...row.hindrances.map((each) => each.since_ms ?? Infinity));
  return html`<span class="state busy">${visible(row.state)}</span> <span class="marks">${row.hindrances.map((each) => html`<${Mark} key=${each.reason} text=${each.reason} title=${words} />`)}</span>${" "}
    ${since < Infinity ? html`<${Since} ms=${since} />` : null}`;
}

function client(row) {
  return [row.client_properties.product, row.client_properties.version].filter((each) => typeof each === "string").join(" ");
}

function traffic(row, key) {
  const found = row[`${key}_details`]?.rate;
  return found === undefined ? bytes(row[key]) : `${bytes(found)}/s`;
}

const COLUMNS = [
  {key: "name", title: "Name", sort: "name", cell: (row) => html`<a href=${link(["connections", row.name])}><${Name} value=${row.user_provided_name || row.name} /></a>
    ${row.user_provided_name ? html`<div class="hint peer">${peer(row)}</div>` : null}`},
  {key: "user", title: "User", sort: "user", wide: true, cell: (row) => visible(row.user, "not yet")},
  {key: "vhost", title: "Virtual host", sort: "vhost", wide: true, cell: (row) => visible(row.vhost, "none yet")},
  {key: "state", title: "State", sort: "state", cell: (row) => html`<${State} row=${row} />`},
  {key: "client", title: "Client", sort: "client_properties.product", wide: true, cell: (row) => html`<${Name} value=${client(row)} empty="says nothing" />`},
  {key: "tls", title: "TLS", sort: "ssl", wide: true, cell: (row) => (row.ssl ? visible(row.ssl_protocol) : "none")},
  {key: "channels", title: "Channels", sort: "channels", figure: true, wide: true, cell: (row) => number(row.channels)},
  {key: "unacked", title: "Unacked", sort: "messages_unacknowledged", figure: true, cell: (row) => number(row.messages_unacknowledged)},
  {key: "in", title: "From it", sort: "recv_oct_details.rate", figure: true, wide: true, cell: (row) => traffic(row, "recv_oct")},
  {key: "out", title: "To it", sort: "send_oct_details.rate", figure: true, wide: true, cell: (row) => traffic(row, "send_oct")},
  {key: "since", title: "Connected", sort: "connected_at", wide: true, cell: (row) => html`<${Ago} ms=${row.connected_at} />`},
];

export function Connections(props) {
  const [chosen, setChosen] = useState(new Map());
  const [isAsking, setAsking] = useState(false);
  const select = {
    chosen,
    one: (row) => setChosen((was) => {
      const next = new Map(was);
      if (!next.delete(row.name)) next.set(row.name, row);
      return next;
    }),
    all: (rows) => setChosen((was) => new Map(rows.every((row) => was.has(row.name)) ? [] : rows.map((row) => [row.name, row]))),
  };
  return html`<${Clients} kind="connections" noun="connections" ...${props} columns=${COLUMNS} keyOf=${(row) => row.name} select=${select}
    empty="No client is connected." hint="name, user, client, blocked">
    ${(refresh) => html`${chosen.size ? html`<span class="buttons">${number(chosen.size)} chosen: <button type="button" class="danger" onClick=${() => setAsking(true)}>Close…</button></span>` : null}
      ${isAsking ? html`<${Close} rows=${[...chosen.values()]} onClose=${(isDone) => {
        setAsking(false);
        if (isDone) setChosen(new Map());
        refresh();
      }} />` : null}`}</${Clients}>`;
}

// Closes connections, with a reason that the clients and the log get.
function Close({rows, onClose}) {
  const [reason, setReason] = useState("Closed via management plugin");
  const word = rows.length > 1 ? `close ${rows.length}` : null;
  const unacked = rows.reduce((sum, row) => sum + row.messages_unacknowledged, 0);
  const act = async () => {
    const failures = [];
    for (const row of rows) {
      // A header holds no control characters, and a browser writes each sign as one octet: those of UTF-8 here.
      const octets = new TextEncoder().encode(reason.replace(/[\u0000-\u001f\u007f]/g, " "));
      const more = {"X-Reason": String.fromCharCode(...octets)};
      await request("DELETE", `connections/${path(row.name)}`, undefined, undefined, more).catch((error) => {
        if (error.status !== 404) failures.push(error);
      });
    }
    if (failures.length) throw Object.assign(failures[0], {message: `${failures.length} of ${rows.length} are still open: ${failures[0].message}`});
  };
  return html`<${Confirm} title="Close" action="Close" word=${word} onDo=${act} onClose=${onClose}>
    <p>${rows.length === 1 ? html`The connection <${Name} value=${rows[0].user_provided_name || rows[0].name} /> of ${visible(rows[0].user, "nobody yet")}` : many(rows.length, "connections")} will be closed;
      ${unacked === 1 ? " one unacked message goes" : ` ${number(unacked)} unacked messages go`} back to the queues, exclusive queues go. Most clients connect again by themselves.</p>
    <label>Reason <input value=${reason} onInput=${(event) => setReason(event.target.value)} /></label></${Confirm}>`;
}

export function Hindrances({rows}) {
  return rows.map((each) => html`<p key=${each.reason} class="notice busy" role="note">${visible(each.text)} ${each.since_ms === null ? null : html`So <${Since} ms=${each.since_ms} />, since ${moment(new Date(each.since_ms))}.`}</p>`);
}

export function Connection(props) {
  const {route, setQuery} = props;
  const [, name] = route.parts;
  const {data: shown, error, isGone, refresh} = usePage(props, `burrowmq/pages/connection/${path(name)}?history=${rangeOf(route.query, OBJECT_AGES)}`, SECONDS);
  const [isAsking, setAsking] = useState(false);
  if (!shown) return html`<${Failure} error=${error} />`;
  const {connection: row, channels} = shown;
  return html`${isGone ? html`<p class="notice busy" role="status">It has been closed; this is what was last known of it.</p>` : html`<${Failure} error=${error} />`}
    <p><${State} row=${row} /> ${row.user_provided_name ? html`<strong><${Name} value=${row.user_provided_name} /></strong>, ` : null}${visible(row.user, "not logged in yet")} in virtual host <${Name} value=${row.vhost} empty="(none yet)" />${" "}
      ${isGone ? null : html`<button type="button" class="danger" onClick=${() => setAsking(true)}>Close…</button>`}</p>
    <${Hindrances} rows=${row.hindrances} />
    <section class="figures" aria-label="Figures">
      <div><b>${traffic(row, "recv_oct")}</b> from it</div><div><b>${traffic(row, "send_oct")}</b> to it</div>
      <div><b>${bytes(row.send_pend)}</b> not taken yet</div><div><b>${number(row.messages_unacknowledged)}</b> unacked</div>
      <div><b>${number(row.consumer_count)}</b> ${noun(row.consumer_count, "consumers")}</div></section>
    <${ObjectPast} kind="connection" history=${shown.history} query=${route.query} setQuery=${setQuery} />
    <div class="columns"><section><h2>Connection</h2><${About} row=${row} /></section>
      <section><h2>Client</h2><${Properties} found=${row.client_properties} /></section></div>
    <h2>Channels</h2>
    <${Table} caption="Channels" columns=${CHANNEL_COLUMNS.filter((column) => !["user", "vhost"].includes(column.key)).map(({sort, ...column}) => column)} rows=${channels}
      keyOf=${(each) => each.name} query=${{}} empty="No channel is open." />
    ${isAsking ? html`<${Close} rows=${[row]} onClose=${() => {
      setAsking(false);
      refresh();
      setTimeout(refresh, AGAIN_MS);
    }} />` : null}`;
}

function About({row}) {
  const facts = [
    ["Name", html`<${Name} value=${row.name} length=${80} />`], ["From", visible(`${row.peer_host}:${row.peer_port}`)], ["To", visible(`${row.host}:${row.port}`)],
    ["Protocol", `${row.protocol}, login by ${visible(row.auth_mechanism, "nothing yet")}`],
    ["TLS", row.ssl ? visible([row.ssl_protocol, row.ssl_cipher, row.ssl_hash].filter(Boolean).join(", ")) : "none: what is sent can be read on the way"],
    ...(row.peer_cert_subject ? [["Certificate", html`<${Name} value=${row.peer_cert_subject} length=${80} />`]] : []),
    ["Connected", html`<${Ago} ms=${row.connected_at} />, ${moment(new Date(row.connected_at))}`], ["Heartbeat", row.timeout ? `every ${row.timeout} s` : "off: a dead peer is not noticed"],
    ["Largest frame", row.frame_max ? bytes(row.frame_max) : "no limit"], ["Most channels", row.channel_max ? number(row.channel_max) : "no limit"],
  ];
  return html`<dl>${facts.map(([key, value]) => html`<dt key=${key}>${key}</dt><dd>${value}</dd>`)}</dl>`;
}

function Properties({found}) {
  const {capabilities, ...others} = found;
  const can = Object.entries(capabilities ?? {}).filter(([, value]) => value === true).map(([key]) => key);
  const rows = Object.entries(others);
  if (!rows.length && !can.length) return html`<p class="empty">It says nothing of itself.</p>`;
  return html`<dl>${rows.map(([key, value]) => html`<dt key=${key}>${visible(key)}</dt><dd><${Name} value=${typeof value === "object" ? JSON.stringify(value) : value} length=${80} /></dd>`)}
    ${can.length ? html`<dt>can</dt><dd>${visible(can.join(", "))}</dd>` : null}</dl>`;
}

