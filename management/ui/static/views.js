// Which module shows which address. A page's module is fetched when somebody first goes there, so that the first view
// stays light however many pages there are; what was fetched stays.

// name, title, sign: the pages that are always in sight.
export const PAGES = [
  ["overview", "Overview", "◎"], ["queues", "Queues", "≡"], ["exchanges", "Exchanges", "⇄"],
  ["connections", "Connections", "⌁"], ["channels", "Channels", "∥"], ["policies", "Policies", "§"],
  ["admin", "Admin", "☺"], ["node", "Node", "▣"],
];
// By name and number of parts of the address, or by name alone; the function of the module that shows it.
const VIEWS = {
  "overview": [() => import("./pages/overview.js"), "Overview"],
  "overview/2": [() => import("./pages/definitions.js"), "Definitions"],
  "queues": [() => import("./pages/queues.js"), "Queues"],
  "queues/2": [() => import("./pages/compare.js"), "Compare"],
  "queues/3": [() => import("./pages/queue.js"), "Queue"],
  "exchanges": [() => import("./pages/exchanges.js"), "Exchanges"],
  "exchanges/3": [() => import("./pages/exchange.js"), "Exchange"],
  "connections": [() => import("./pages/connections.js"), "Connections"],
  "connections/2": [() => import("./pages/connections.js"), "Connection"],
  "channels": [() => import("./pages/channels.js"), "Channels"],
  "channels/2": [() => import("./pages/channels.js"), "Channel"],
  "consumers": [() => import("./pages/channels.js"), "Consumers"],
  "policies": [() => import("./pages/policies.js"), "Policies"],
  "admin": [() => import("./pages/admin.js"), "Admin"],
  "node": [() => import("./pages/node.js"), "Node"],
  "node/2": [() => import("./pages/log.js"), "Log"],
};
// What belongs to the frame and is not there at first.
const PARTS = {
  "login": [() => import("./pages/login.js"), "Login"],
  "search": [() => import("./search.js"), "Search"],
};
// Where a page without a place of its own belongs.
const WITHIN = {consumers: "channels"};
// What search finds beside the names of things: title, parts of the address, and its query. Some are questions.
export const PLACES = [
  ...PAGES.map(([name, title]) => [title, [name]]),
  ["Consumers", ["consumers"]], ["Users", ["admin", "users"]], ["Virtual hosts", ["admin", "vhosts"]], ["Permissions", ["admin", "permissions"]],
  ["Parameters", ["admin", "parameters"]], ["Shovels", ["admin", "shovels"]], ["Import", ["admin", "import"]], ["Feature flags", ["admin", "flags"]], ["Configuration", ["admin", "configuration"]],
  ["Log", ["node", "log"]], ["Definitions: export and import", ["overview", "definitions"]],
  ["Queues: which are deepest", ["queues"], {sort: "messages_ready", desc: 1}], ["Queues: which grow", ["queues"], {sort: "messages_details.rate", desc: 1}],
  ["Connections: who sends most", ["connections"], {sort: "recv_oct_details.rate", desc: 1}],
  ["Channels: who holds unacked messages", ["channels"], {sort: "messages_unacknowledged", desc: 1}],
];

// What shows an address: the page in the rail that it belongs to, its title, and how to get it.
export function viewOf(parts) {
  const name = VIEWS[parts[0]] ? parts[0] : "overview";
  const key = name === parts[0] && VIEWS[`${name}/${parts.length}`] ? `${name}/${parts.length}` : name;
  const title = PAGES.find(([each]) => each === name)?.[1] ?? name[0].toUpperCase() + name.slice(1);
  return {name, key, title, within: WITHIN[name] ?? name};
}

const got = {};

// The component of a view: at once if it was shown before.
export function fetched(key) {
  return got[key];
}

export async function fetchView(key) {
  const [load, name] = VIEWS[key] ?? PARTS[key];
  got[key] = (await load())[name];
  return got[key];
}
