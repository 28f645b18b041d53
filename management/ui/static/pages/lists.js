// The pages that are one list each.
import {useEffect, useState} from "../vendor/hooks.js";
import {usePolled} from "../api.js";
import {bytes, duration, number, visible} from "../format.js";
import {html} from "../html.js";
import {Failure, Name, Pages, Table} from "../parts.js";
import {path} from "../route.js";
import {Filter} from "./filter.js";

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
  const [last, setLast] = useState(null);
  useEffect(() => {
    if (found.data) setLast(found.data);
  }, [found.data]);
  const data = found.data ?? last;
  return html`<${Filter} value=${query.name} onFilter=${(name) => setQuery({...query, name, page: ""})} />
    <${Failure} error=${found.error} />
    ${data ? html`<${Table} caption=${noun} rows=${data.items} ...${{columns, keyOf, query, setQuery, empty}} />
      <${Pages} page=${data.page} pageCount=${data.page_count} filtered=${data.filtered_count} total=${data.total_count} ...${{noun, query, setQuery}} />` : null}`;
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
