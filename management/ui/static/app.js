// The frame around the pages: login, rail, top bar, theme, search. Which page is shown stands in the address alone.
import {render} from "./vendor/preact.js";
import {useCallback, useEffect, useState} from "./vendor/hooks.js";
import {onLoggedOut, request, usePolled} from "./api.js";
import {html} from "./html.js";
import {Login} from "./pages/login.js";
import {Channel, Channels, Consumers} from "./pages/channels.js";
import {Connection, Connections} from "./pages/connections.js";
import {Exchange} from "./pages/exchange.js";
import {Exchanges} from "./pages/exchanges.js";
import {Admin, Node} from "./pages/lists.js";
import {Policies} from "./pages/policies.js";
import {Overview} from "./pages/overview.js";
import {Queue} from "./pages/queue.js";
import {Queues} from "./pages/queues.js";
import {link, parse} from "./route.js";
import {Search} from "./search.js";
import {visible} from "./format.js";

export const PAGES = [
  ["overview", "Overview", "◎"], ["queues", "Queues", "≡"], ["exchanges", "Exchanges", "⇄"],
  ["connections", "Connections", "⌁"], ["channels", "Channels", "∥"], ["policies", "Policies", "§"],
  ["admin", "Admin", "☺"], ["node", "Node", "▣"],
];
const SHOWN = {
  overview: Overview, queues: Queues, exchanges: Exchanges, connections: Connections, channels: Channels,
  policies: Policies, admin: Admin, node: Node, consumers: Consumers,
};
// Pages below a page, by how many parts their address has.
const BELOW = {"queues/3": Queue, "exchanges/3": Exchange, "connections/2": Connection, "channels/2": Channel};
// Where a page without a place in the rail belongs.
const WITHIN = {consumers: "channels"};
const THEMES = ["system", "light", "dark"];

function useRoute() {
  const [route, setRoute] = useState(() => parse(location.hash));
  useEffect(() => {
    const changed = () => setRoute(parse(location.hash));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}

function useTheme() {
  const [theme, setTheme] = useState(() => kept("theme", THEMES));
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    localStorage.setItem("theme", theme);
  }, [theme]);
  return [theme, () => setTheme(THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length])];
}

function kept(name, allowed) {
  const found = localStorage.getItem(name);
  return allowed.includes(found) ? found : allowed[0];
}

function App() {
  const [user, setUser] = useState(undefined);
  const [isLost, setLost] = useState(false);
  const [theme, nextTheme] = useTheme();
  const whoami = useCallback(async () => {
    // Who never logged in here need not be told so by an error.
    if (!localStorage.getItem("wasLoggedIn")) {
      setUser(null);
      return;
    }
    try {
      setUser(await request("GET", "whoami"));
      setLost(false);
    } catch (error) {
      if (error.status === undefined) setLost(true);
      else forget();
    }
  }, []);
  const forget = useCallback(() => {
    localStorage.removeItem("wasLoggedIn");
    setUser(null);
  }, []);
  const enter = () => {
    localStorage.setItem("wasLoggedIn", "1");
    whoami();
  };
  useEffect(() => {
    whoami();
    return onLoggedOut(forget);
  }, []);
  if (isLost && !user) {
    return html`<main class="login"><h1>BurrowMQ</h1><p role="alert">The node gives no answer.</p>
      <button type="button" onClick=${whoami}>Try again</button></main>`;
  }
  if (user === undefined) return html`<main class="login" aria-busy="true"></main>`;
  if (user === null) return html`<${Login} onDone=${enter} />`;
  return html`<${Frame} user=${user} onLogout=${forget} theme=${theme} nextTheme=${nextTheme} />`;
}

function Frame({user, onLogout, theme, nextTheme}) {
  const route = useRoute();
  const [isPaused, setPaused] = useState(false);
  const [isSearching, setSearching] = useState(false);
  const [seen, setSeen] = useState({});
  const page = SHOWN[route.parts[0]] ? route.parts[0] : "overview";
  const vhost = route.query.vhost ?? "";
  useEffect(() => {
    const pressed = (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "k") {
        event.preventDefault();
        setSearching(true);
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  useEffect(() => {
    const title = titleOf(page);
    document.title = [...route.parts.slice(1).reverse().map((part) => visible(part)), title, "BurrowMQ"].join(" · ");
  }, [page, route]);
  const setQuery = useCallback((query) => {
    location.hash = link(route.parts.length ? route.parts : ["overview"], query);
  }, [route]);
  const logout = async () => {
    await request("DELETE", "login").catch(() => {});
    onLogout();
  };
  const View = BELOW[`${page}/${route.parts.length}`] ?? SHOWN[page];
  return html`<div class="frame">
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>To the page</a>
    <nav class="rail" aria-label="Pages">
      <div class="brand">BurrowMQ</div>
      ${PAGES.map(([name, title, sign]) => html`<a key=${name} href=${link([name], {vhost})}
        aria-current=${(WITHIN[page] ?? page) === name ? "page" : undefined}><span class="sign" aria-hidden="true">${sign}</span>${title}</a>`)}
      <${Vhosts} chosen=${vhost} setVhost=${(name) => setQuery({...route.query, vhost: name, page: ""})} />
      <div class="user"><span class="name" title=${(user.tags ?? []).join(", ")}>${visible(user.name)}</span>
        <button type="button" onClick=${logout}>Log out</button></div>
    </nav>
    <header class="top">
      <${Crumbs} route=${route} page=${page} />
      <button type="button" onClick=${() => setSearching(true)}>Search <kbd>Ctrl K</kbd></button>
      <button type="button" aria-pressed=${isPaused} onClick=${() => setPaused(!isPaused)}>${isPaused ? "Go on" : "Pause"}</button>
      <button type="button" onClick=${nextTheme} >Theme: ${theme}</button>
      <span class="seen" aria-live="off">${seen.at ? seen.at.toLocaleTimeString() : ""}</span>
    </header>
    ${seen.isAway ? html`<div class="away" role="alert">The node gives no answer. The figures are those of
      ${seen.at ? seen.at.toLocaleTimeString() : "never"}; it is asked again by itself.</div>` : null}
    <main id="main" tabindex="-1" class=${seen.isAway ? "stale" : ""}>
      <${View} key=${route.parts.join("/")} ...${{route, user, vhost, isPaused, setQuery, setSeen}} />
    </main>
    ${isSearching ? html`<${Search} pages=${PAGES} onClose=${() => setSearching(false)} />` : null}
  </div>`;
}

function titleOf(page) {
  return PAGES.find(([name]) => name === page)?.[1] ?? page[0].toUpperCase() + page.slice(1);
}

function Crumbs({route, page}) {
  const title = titleOf(page);
  const below = route.parts.slice(1).map((part) => visible(part)).join(" › ");
  return html`<h1 class="crumbs">${below ? html`<a href=${link([page])}>${title}</a> › ${below}` : title}</h1>`;
}

function Vhosts({chosen, setVhost}) {
  const {data} = usePolled("vhosts?columns=name", 60, false);
  const names = (data ?? []).map((row) => row.name);
  return html`<label class="vhosts">Virtual host
    <select value=${chosen} onChange=${(event) => setVhost(event.target.value)}>
      <option value="">All</option>
      ${names.map((name) => html`<option key=${name} value=${name}>${visible(name)}</option>`)}
    </select></label>`;
}

render(html`<${App} />`, document.getElementById("app"));
