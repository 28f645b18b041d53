// The pages that are one list each.
import {useEffect} from "../vendor/hooks.js";
import {usePolled} from "../api.js";
import {bytes, number, rate, visible} from "../format.js";
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
