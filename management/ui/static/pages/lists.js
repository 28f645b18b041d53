// The pages that are one list each.
import {usePage} from "../api.js";
import {number} from "../format.js";
import {html} from "../html.js";
import {Failure, Name, Pages, Table, useFirstPage} from "../parts.js";
import {path} from "../route.js";
import {Filter} from "./filter.js";

const SECONDS = 5;
export const text = (key) => (row) => html`<${Name} value=${row[key]} />`;
export const figure = (key) => (row) => number(row[key]);

// A list that the server filters, sorts and pages.
export function List(props) {
  const {kind, noun, columns, keyOf, empty, perVhost, route: {query}, vhost, setQuery} = props;
  const asked = {page: query.page || 1, page_size: 100, name: query.name, sort: query.sort, sort_reverse: query.desc ? "true" : ""};
  const kept = Object.entries(asked).filter(([, value]) => value);
  const where = vhost && perVhost ? `${kind}/${path(vhost)}` : kind;
  const {data, error} = usePage(props, `${where}?${new URLSearchParams(kept)}`, SECONDS);
  useFirstPage(error, props.route);
  return html`<${Filter} value=${query.name} onFilter=${(name) => setQuery({...query, name, page: ""})} />
    <${Failure} error=${error} />
    ${data ? html`<${Table} caption=${noun} rows=${data.items} ...${{columns, keyOf, query, setQuery}} empty=${query.name ? "Nothing has such a name." : empty} />
      <${Pages} page=${data.page} pageCount=${data.page_count} filtered=${data.filtered_count} total=${data.total_count} ...${{noun, query, setQuery}} />` : null}`;
}
