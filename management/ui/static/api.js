// The HTTP API as the pages call it. Every request bears X-Requested-With: without it the login's cookie does not count.
import {useCallback, useEffect, useLayoutEffect, useRef, useState} from "./vendor/hooks.js";

const BASE = new URL(".", location.origin + location.pathname).href;
const SELDOM_MS = 60000;
// A node or a network that hangs breaks no connection; the answer may still come, so it is waited for.
const LATE_MS = 15000;
// Browsers take these out of an address, however they are written: what is left may be something else's.
const DOTS = /(^|\/)\.\.?(\/|\?|$)/;
const listeners = new Set();
const watchers = new Set();

export class Refused extends Error {
  constructor(status, path, body) {
    super(typeof body.reason === "string" ? body.reason : JSON.stringify(body.reason ?? body.error ?? status));
    this.status = status;
    this.path = path;
  }
}

export async function request(...asked) {
  const text = await requestText(...asked);
  return text ? JSON.parse(text) : {};
}

// The same as the node wrote it, and a Blob as it is: JSON.parse has no whole numbers beyond 2^53, and makes 1 of 1.0.
export async function requestText(method, path, body, signal, more) {
  if (DOTS.test(path)) throw Object.assign(new Error("No browser can ask for the names . and .. by their address: burrowctl can."), {status: 0});
  const headers = {"X-Requested-With": "BurrowMQ", Accept: "application/json", ...more};
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await (early(method, path) ?? fetch(BASE + "api/" + path, {
    method, headers, signal, body: body === undefined || body instanceof Blob ? body : JSON.stringify(body),
  }).catch((error) => {
    error.isChange = method !== "GET";
    throw error;
  }));
  const alarms = answer.headers.get("x-alarms");
  if (alarms !== null) for (const watcher of watchers) watcher(alarms);
  const text = await answer.text();
  const isJson = (answer.headers.get("content-type") ?? "").startsWith("application/json");
  if (answer.ok) return isJson ? text : "";
  const found = isJson && text ? JSON.parse(text) : {};
  const refused = new Refused(answer.status, path, found);
  // Without a reason nobody is logged in (any more); with one, this user may not.
  if (answer.status === 401 && !found.reason) for (const listener of listeners) listener();
  throw refused;
}

// What early.js has asked for: once, for after that it is old.
function early(method, path) {
  const found = window.early;
  if (method !== "GET" || found?.path !== path) return undefined;
  delete window.early;
  return found.answer;
}

export function onLoggedOut(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

// `watcher` is told with each answer which alarms are on: their names, or an empty text.
export function onAlarms(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

// What a path answers, again every few seconds while somebody looks: not in hidden tabs, not while paused, later and
// later while the node is away. `seldom` is a query that the first request has too, and then one a minute.
export function usePolled(path, seconds, isPaused, seldom = "") {
  const [state, setState] = useState({path, data: null, error: null, at: null});
  const again = useRef(() => {});
  // Before the browser paints: an effect proper would ask a frame later.
  useLayoutEffect(() => {
    let timer = 0;
    let failures = 0;
    let seldomAt = -Infinity;
    const stop = new AbortController();
    const wait = () => {
      if (isPaused || stop.signal.aborted) return;
      clearTimeout(timer); // of another answer: whoever shows the page asks at once
      timer = setTimeout(ask, 1000 * Math.min(60, seconds * 2 ** Math.min(failures, 5)));
    };
    const failed = (error) => {
      if (!stop.signal.aborted) setState((was) => ({path, data: was.path === path ? was.data : null, error, at: was.at}));
    };
    const ask = async () => {
      clearTimeout(timer);
      if (document.hidden) return;
      const late = setTimeout(() => failed(new Error("It has not answered yet.")), LATE_MS);
      try {
        const isTime = seldom && performance.now() - seldomAt >= SELDOM_MS;
        const data = await request("GET", isTime ? `${path}&${seldom}` : path, undefined, stop.signal);
        if (isTime) seldomAt = performance.now();
        failures = 0;
        if (!stop.signal.aborted) setState({path, data, error: null, at: new Date()});
      } catch (error) {
        if (stop.signal.aborted) return;
        failures += error instanceof Refused ? 0 : 1;
        failed(error);
      } finally {
        clearTimeout(late);
      }
      wait();
    };
    const shown = () => document.hidden || ask();
    again.current = ask;
    document.addEventListener("visibilitychange", shown);
    ask();
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", shown);
    };
  }, [path, seconds, isPaused]);
  const refresh = useCallback(() => again.current(), []);
  const isOurs = state.path === path;
  return {
    data: isOurs ? state.data : null,
    error: isOurs ? state.error : null,
    at: state.at,
    refresh,
  };
}

// What a page shows: the answer to its question. Until there is one, `data` is the last one of the same page, so that
// nothing jumps; it also stays while the node is away, and when what it is about is gone.
// That it is gone stays as well. A refused question has none. The frame is told how old it is. `error` is what the page has to say; that the node is away is the frame's to say.
export function usePage({isPaused, setSeen}, path, seconds, seldom) {
  const {data, error, at, refresh} = usePolled(path, seconds, isPaused, seldom);
  const last = useRef(null);
  const gone = useRef(null);
  if (data) last.current = data;
  if (data || error?.status) gone.current = error?.status === 404 ? path : null;
  const isRefused = Boolean(error?.status) && error.status !== 404;
  const shown = data ?? (isRefused ? null : last.current);
  const isAway = error !== null && error.status === undefined && (shown !== null || gone.current === path);
  useEffect(() => setSeen({at, isAway}), [at, isAway]);
  return {data: shown, answer: data, error: isAway ? null : error, isGone: error !== null && gone.current === path, at, refresh};
}
