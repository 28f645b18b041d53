// The pages that are one list each.
import {useEffect} from "../vendor/hooks.js";
import {usePolled} from "../api.js";
import {bytes, duration, number, rate, visible} from "../format.js";
import {html} from "../html.js";
import {Failure, Name, Pages, Table} from "../parts.js";
import {path} from "../route.js";

const SECONDS = 5;
export const text = (key) => (row) => html`<${Name} value=${row[key]} />`;
export const figure = (key) => (row) => number(row[key]);

// A list that the server filters, sorts and pages.
export function List({kind, noun, columns, keyOf, empty, perVhost, route, vhost, isPaused, setQuery, setSeen}) {
  const {query} = route;
  const asked = {page: query.page || 1, page_size: 100, name: query.name, sort: query.sort, sort_reverse: query.desc ? "true" : ""};
  const kept = Object.entries(asked).filter(([, value]) => value);
  const where = vhost && perVhost ? `${kind}/${path(vhost)}` : kind;
  const found = usePolled(`${where}?${new URLSearchParams(kept)}`, SECONDS, isPaused);
  useEffect(() => setSeen({at: found.at, isAway: found.isStale}), [found.at, found.isStale]);
  const data = found.data;
  return html`<form class="filter" role="search" onSubmit=${(event) => {
    event.preventDefault();
    setQuery({...query, name: new FormData(event.target).get("name"), page: ""});
  }}><label>Filter <input type="search" name="name" value=${query.name ?? ""} /></label><button type="submit">Filter</button></form>
    <${Failure} error=${found.error} />
    ${data ? html`<${Table} caption=${noun} rows=${data.items} ...${{columns, keyOf, query, setQuery, empty}} />
      <${Pages} page=${data.page} pageCount=${data.page_count} filtered=${data.filtered_count} total=${data.total_count} ...${{noun, query, setQuery}} />` : null}`;
}

export function Exchanges(props) {
  const columns = [
    {key: "vhost", title: "Virtual host", sort: "vhost", wide: true, cell: text("vhost")},
    {key: "name", title: "Name", sort: "name", cell: (row) => html`<${Name} value=${row.name} empty="(default)" />`},
    {key: "type", title: "Type", sort: "type", cell: text("type")},
    {key: "durable", title: "Durable", wide: true, cell: (row) => (row.durable ? "durable" : "transient")},
    {key: "internal", title: "For", wide: true, cell: (row) => (row.internal ? "exchanges only" : "clients")},
    {key: "policy", title: "Policy", wide: true, cell: (row) => (row.policy ? html`<${Name} value=${row.policy} />` : "")},
    {key: "in", title: "In", figure: true, wide: true, cell: (row) => rate(row.message_stats?.publish_in_details?.rate ?? 0)},
  ];
  return html`<${List} kind="exchanges" perVhost noun="exchanges" ...${props} columns=${columns} keyOf=${(row) => `${row.vhost} ${row.name}`} />`;
}

export function Connections(props) {
  const columns = [
    {key: "name", title: "Name", sort: "name", cell: (row) => html`<${Name} value=${row.user_provided_name || row.name} />`},
    {key: "user", title: "User", sort: "user", wide: true, cell: text("user")},
    {key: "vhost", title: "Virtual host", sort: "vhost", wide: true, cell: text("vhost")},
    {key: "state", title: "State", sort: "state", cell: text("state")},
    {key: "ssl", title: "TLS", wide: true, cell: (row) => (row.ssl ? visible(row.ssl_protocol) : "none")},
    {key: "client", title: "Client", wide: true, cell: (row) => visible([row.client_properties?.product, row.client_properties?.version].filter(Boolean).join(" "))},
    {key: "channels", title: "Channels", sort: "channels", figure: true, cell: figure("channels")},
    {key: "in", title: "From client", figure: true, wide: true, cell: (row) => bytes(row.recv_oct)},
    {key: "out", title: "To client", figure: true, wide: true, cell: (row) => bytes(row.send_oct)},
  ];
  return html`<${List} kind="connections" noun="connections" ...${props} columns=${columns} keyOf=${(row) => row.name} empty="No client is connected." />`;
}

export function Channels(props) {
  const columns = [
    {key: "name", title: "Name", sort: "name", cell: text("name")},
    {key: "user", title: "User", sort: "user", wide: true, cell: text("user")},
    {key: "vhost", title: "Virtual host", sort: "vhost", wide: true, cell: text("vhost")},
    {key: "mode", title: "Mode", wide: true, cell: (row) => (row.confirm ? "confirms" : row.transactional ? "transactions" : "plain")},
    {key: "prefetch", title: "Prefetch", sort: "prefetch_count", figure: true, wide: true, cell: (row) => (row.prefetch_count ? number(row.prefetch_count) : "no limit")},
    {key: "unacked", title: "Unacked", sort: "messages_unacknowledged", figure: true, cell: figure("messages_unacknowledged")},
    {key: "unconfirmed", title: "Unconfirmed", sort: "messages_unconfirmed", figure: true, cell: figure("messages_unconfirmed")},
    {key: "consumers", title: "Consumers", sort: "consumer_count", figure: true, wide: true, cell: figure("consumer_count")},
  ];
  return html`<${List} kind="channels" noun="channels" ...${props} columns=${columns} keyOf=${(row) => row.name} empty="No channel is open." />`;
}

export function Admin(props) {
  if (!props.user.tags.includes("administrator")) return html`<p class="empty">Users and permissions are for administrators.</p>`;
  const users = [
    {key: "name", title: "Name", sort: "name", cell: text("name")},
    {key: "tags", title: "Tags", cell: (row) => visible(row.tags.join(", "), "none")},
    {key: "password", title: "Password", wide: true, cell: (row) => (row.password_hash ? "set" : "none: cannot log in with one")},
    {key: "limits", title: "Limits", wide: true, cell: (row) => visible(Object.entries(row.limits ?? {}).map(([key, value]) => `${key} ${value}`).join(", "), "none")},
  ];
  const permissions = [
    {key: "user", title: "User", sort: "user", cell: text("user")},
    {key: "vhost", title: "Virtual host", sort: "vhost", cell: text("vhost")},
    ...["configure", "write", "read"].map((key) => ({key, title: key[0].toUpperCase() + key.slice(1), wide: true, cell: (row) => html`<code>${visible(row[key])}</code>`})),
  ];
  return html`<h2>Users</h2><${List} kind="users" noun="users" ...${props} columns=${users} keyOf=${(row) => row.name} />
    <h2>Permissions</h2><${List} kind="permissions" noun="permissions" ...${props} columns=${permissions} keyOf=${(row) => `${row.vhost} ${row.user}`} />`;
}

export function Node({user, isPaused, setSeen}) {
  const {data, error, at, isStale} = usePolled("nodes", SECONDS, isPaused);
  useEffect(() => setSeen({at, isAway: isStale}), [at, isStale]);
  if (!user.tags.some((tag) => tag === "administrator" || tag === "monitoring")) return html`<p class="empty">The node is for the tags monitoring and administrator.</p>`;
  if (!data) return html`<${Failure} error=${error} />`;
  const [node] = data;
  const share = (used, total, show) => html`<td class="figure">${show(used)}</td><td class="figure">${show(total)}</td>
    <td><meter min="0" max=${total} value=${Math.min(used, total)} aria-label="Share"></meter></td>`;
  return html`<p>${visible(node.name)} runs for ${duration(node.uptime / 1000)}, as process ${node.os_pid}, data in <code>${visible(node.db_dir)}</code></p>
    <table><caption class="unseen">Resources</caption><thead><tr><th scope="col">Resource</th><th scope="col" class="figure">Used</th><th scope="col" class="figure">Of</th><th></th></tr></thead><tbody>
      <tr><td>Memory</td>${share(node.mem_used, node.mem_limit, bytes)}</tr>
      <tr><td>Disk: free, needed</td>${share(node.disk_free, node.disk_free_limit, bytes)}</tr>
      <tr><td>File descriptors</td>${share(node.fd_used, node.fd_total, number)}</tr>
      <tr><td>Sockets</td>${share(node.sockets_used, node.sockets_total, number)}</tr>
      <tr><td>Open files of the store</td>${share(node.store_files_used, node.store_files_total, number)}</tr></tbody></table>
    <h2>Configuration files</h2><ul>${node.config_files.map((name) => html`<li key=${name}><code>${visible(name)}</code></li>`)}</ul>
    <h2>Logs</h2><ul>${node.log_files.map((name) => html`<li key=${name}><code>${visible(name)}</code></li>`)}</ul>`;
}
