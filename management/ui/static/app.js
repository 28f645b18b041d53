// The frame around the pages: login, rail, top bar, theme, search. Which page is shown stands in the address alone.
import {render} from "./vendor/preact.js";
import {useCallback, useEffect, useLayoutEffect, useRef, useState} from "./vendor/hooks.js";
import {reported} from "./act.js";
import {onAlarms, onLoggedOut, request, usePolled} from "./api.js";
import {html} from "./html.js";
import {goBy} from "./keys.js";
import {link, parse} from "./route.js";
import {clock, inUtc, visible} from "./format.js";
import {PAGES, fetchView, fetched, viewOf} from "./views.js";

const THEMES = ["system", "light", "dark"];
const ZONES = ["local", "UTC"];
const ALARMS = {memory: "memory alarm", disk: "disk alarm", store: "the store cannot write", queue: "queues blocked", cluster: "cluster out of reach"};

// The user whom the node named last in this browser, so that a page need not wait until it is named again. It is no
// login: that is a cookie, which no script sees.
function remembered() {
  try {
    const found = JSON.parse(localStorage.getItem("user"));
    return Array.isArray(found?.tags) ? found : null;
  } catch {
    return null;
  }
}

function remember(user) {
  if (user) localStorage.setItem("user", JSON.stringify(user));
  else localStorage.removeItem("user");
}

function useRoute() {
  const [route, setRoute] = useState(() => parse(location.hash));
  useEffect(() => {
    const changed = () => setRoute(parse(location.hash));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}

// A choice that this browser keeps, and what takes the next one.
function useChoice(name, allowed, apply) {
  const [value, setValue] = useState(() => {
    const found = localStorage.getItem(name);
    const kept = allowed.includes(found) ? found : allowed[0];
    apply(kept);
    return kept;
  });
  const next = () => {
    const chosen = allowed[(allowed.indexOf(value) + 1) % allowed.length];
    localStorage.setItem(name, chosen);
    apply(chosen);
    setValue(chosen);
  };
  return [value, next];
}

function App() {
  // Who it is: who it was last time until the node has said so (`isSure`), null: nobody. `isOut`: the node knows the
  // login no more, the page stays as it is.
  const [user, setUser] = useState(remembered);
  const [isOut, setOut] = useState(false);
  const [isLost, setLost] = useState(false);
  const isSure = useRef(false);
  const whoami = useCallback(async () => {
    try {
      const found = await request("GET", "whoami");
      remember(found);
      isSure.current = true;
      setUser(found);
      setLost(false);
      setOut(false);
    } catch (error) {
      if (error.status === undefined) setLost(true);
    }
  }, []);
  const leave = useCallback(() => {
    remember(null);
    isSure.current = false;
    setOut(false);
    setUser(null);
  }, []);
  useLayoutEffect(() => {
    // Who never logged in here need not be told so by an error.
    if (user) whoami();
    // Another window has logged in as somebody else, and the cookie is that one's.
    addEventListener("storage", ({key, newValue}) => key === "user" && newValue && whoami());
    return onLoggedOut(() => {
      if (!isSure.current) return leave();
      remember(null);
      return setOut(true);
    });
  }, []);
  if (isLost && !isSure.current) {
    return html`<main class="login"><h1>BurrowMQ</h1><p role="alert">The node gives no answer.</p>
      <button type="button" onClick=${whoami}>Try again</button></main>`;
  }
  if (user === null) return html`<main class="login"><${Fetched} view="login" onDone=${whoami} /></main>`;
  return html`<${Frame} key=${user.name} ...${{user, isOut}} onLogout=${leave} />
    ${isOut ? html`<${LoginAgain} onDone=${whoami} />` : null}`;
}

// The node was started anew, or the login was too old: whoever it was goes on where they were.
function LoginAgain({onDone}) {
  const dialog = useRef(null);
  const show = () => dialog.current?.showModal();
  useEffect(show, []);
  // A browser lets nobody keep somebody from leaving by a second Esc; without it the page would stand still and say nothing.
  return html`<dialog ref=${dialog} class="login" aria-label="Log in again" onCancel=${(event) => event.preventDefault()} onClose=${show}>
    <${Fetched} view="login" onDone=${onDone} isAgain /></dialog>`;
}

function Frame({user, isOut, onLogout}) {
  const route = useRoute();
  const [theme, nextTheme] = useChoice("theme", THEMES, (chosen) => { document.documentElement.dataset.theme = chosen; });
  const [zone, nextZone] = useChoice("zone", ZONES, (chosen) => inUtc(chosen === "UTC"));
  const [isPaused, setPaused] = useState(false);
  const [isSearching, setSearching] = useState(false);
  const [seen, setSeen] = useState({});
  const [alarms, setAlarms] = useState("");
  useEffect(() => onAlarms(setAlarms), []);
  const view = viewOf(route.parts);
  const vhost = route.query.vhost ?? "";
  const [said, setSaid] = useState(null);
  const [isStuck, setStuck] = useState(false);
  useEffect(() => {
    setSaid(reported());
    setStuck(false);
  }, [route]);
  useEffect(() => {
    const pressed = (event) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setSearching(true);
      } else if (goBy(event)) {
        event.preventDefault();
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  useEffect(() => {
    document.title = [...route.parts.slice(1).reverse().map((part) => visible(part)), view.title, "BurrowMQ"].join(" · ");
  }, [route]);
  // Once the page has its figures, so that Ctrl K need not wait.
  const mayFetch = Boolean(seen.at) && !isPaused;
  useEffect(() => {
    if (mayFetch) fetchView("search").catch(() => {});
  }, [mayFetch]);
  // Who goes on by keyboard goes on in the page that came, not before its frame.
  const address = route.parts.join("/");
  const was = useRef(address);
  useEffect(() => {
    if (was.current !== address) document.getElementById("main").focus({preventScroll: true});
    was.current = address;
  }, [address]);
  const setQuery = useCallback((query) => {
    location.hash = link(route.parts.length ? route.parts : ["overview"], query);
  }, [route]);
  const logout = async () => {
    try {
      await request("DELETE", "login");
    } catch (error) {
      // The cookie still counts, whatever this page would show.
      if (error.status === undefined) return setStuck(true);
    }
    onLogout();
  };
  return html`<div class="frame">
    <a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); document.getElementById("main").focus(); }}>To the page</a>
    <nav class="rail" aria-label="Pages">
      <div class="brand">BurrowMQ</div>
      ${PAGES.map(([name, title, sign]) => html`<a key=${name} href=${link([name])}
        aria-current=${view.within === name ? "page" : undefined}><span class="sign" aria-hidden="true">${sign}</span>${title}</a>`)}
      <${Vhosts} chosen=${vhost} isPaused=${isPaused || isOut} setVhost=${(name) => setQuery({...route.query, vhost: name, page: ""})} />
      <div class="user"><span class="name" title=${(user.tags ?? []).join(", ")}>${visible(user.name)}</span>
        <button type="button" onClick=${logout}>Log out</button></div>
    </nav>
    <header class="top">
      <${Crumbs} route=${route} view=${view} />
      ${alarms ? html`<a class="alarm" role="status" href=${link(["overview"])}>${alarms.split(", ").map((name) => ALARMS[name] ?? name).join(", ")}</a>` : null}
      <button type="button" onClick=${() => setSearching(true)}>Search <kbd>Ctrl K</kbd></button>
      <button type="button" aria-pressed=${isPaused} onClick=${() => setPaused(!isPaused)}>${isPaused ? "Go on" : "Pause"}</button>
      <button type="button" onClick=${nextTheme} title="Colours: as the system, light, dark">Theme: ${theme}</button>
      <span class="seen"><button type="button" class="sort" onClick=${nextZone} title=${`Times are ${zone}; change`}>${seen.at ? clock(seen.at) : ""}${zone === "UTC" ? " UTC" : ""}</button>
        ${seen.isAway || isPaused ? html`<span class="badge" role="status">${seen.isAway ? "stale" : "paused"}</span>` : null}</span>
    </header>
    ${seen.isAway ? html`<div class="away" role="alert">The node gives no answer. The figures
      are those of ${seen.at ? clock(seen.at) : "never"}; it is asked again by itself.</div>` : null}
    <main id="main" tabindex="-1" class=${seen.isAway ? "stale" : ""}>
      ${isStuck ? html`<p class="notice bad" role="alert">The node gives no answer: nobody was logged out.</p>` : null}
      ${said ? html`<p class="notice good" role="status">${said}</p>` : null}
      <${Fetched} key=${route.parts.join("/")} view=${view.key} ...${{route, user, vhost, setQuery, setSeen, zone}} isPaused=${isPaused || isOut} />
    </main>
    ${isSearching ? html`<${Fetched} view="search" vhost=${vhost} onClose=${() => setSearching(false)} />` : null}
  </div>`;
}

// A page or another part of the frame, as soon as its module is here.
function Fetched({view, ...rest}) {
  const [state, setState] = useState({});
  const get = () => fetchView(view).then(() => setState({}), (error) => setState({error}));
  const View = fetched(view);
  // By what was rendered: the module may come between that and now.
  useLayoutEffect(() => {
    if (!View) get();
  }, []);
  if (View) return html`<${View} ...${rest} />`;
  return state.error ? html`<p role="alert">This page could not be fetched. <button type="button" onClick=${get}>Try again</button></p>`
    : html`<p aria-busy="true"></p>`;
}

function Crumbs({route, view}) {
  const below = route.parts.slice(1).map((part) => visible(part)).join(" › ");
  return html`<h1 class="crumbs">${below ? html`<a href=${link([view.name])}>${view.title}</a> › ${below}` : view.title}</h1>`;
}

function Vhosts({chosen, isPaused, setVhost}) {
  const {data} = usePolled("vhosts?columns=name", 60, isPaused);
  const names = (data ?? []).map((row) => row.name);
  if (chosen && !names.includes(chosen)) names.push(chosen);
  return html`<label class="vhosts">Virtual host
    <select value=${chosen} onChange=${(event) => setVhost(event.target.value)}>
      <option value="">All</option>
      ${names.map((name) => html`<option key=${name} value=${name}>${visible(name)}</option>`)}
    </select></label>`;
}

// The module of the first page is fetched while the frame is made.
fetchView(remembered() ? viewOf(parse(location.hash).parts).key : "login").catch(() => {});
render(html`<${App} />`, document.getElementById("app"));
