// The end of the log, as it grows: the node keeps the last lines in memory, wherever the log is written to.
import {useEffect, useRef} from "../vendor/hooks.js";
import {usePage} from "../api.js";
import {many} from "../format.js";
import {html} from "../html.js";
import {Failure} from "../parts.js";
import {Filter} from "./filter.js";

const SECONDS = 2;
const LINES = 200;
const LEVELS = ["debug", "info", "warning", "error", "critical"];

export function Log(props) {
  const {user} = props;
  const may = user.tags.some((tag) => tag === "administrator" || tag === "monitoring");
  if (!may) return html`<p class="empty">The log is for the tags monitoring and administrator.</p>`;
  return html`<${Tail} ...${props} />`;
}

function Tail(props) {
  const {route: {query}, setQuery} = props;
  const level = LEVELS.includes(query.level) ? query.level : "debug";
  const asked = new URLSearchParams({lines: LINES, level, text: query.name ?? ""});
  const {data, error, at} = usePage(props, `burrowmq/log-tail?${asked}`, SECONDS);
  const place = useRef(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    // Who reads further up is left there.
    if (place.current && isAtEnd.current) place.current.scrollTop = place.current.scrollHeight;
  }, [at]);
  const lines = data?.lines ?? [];
  return html`<${Filter} value=${query.name} longest="200" onFilter=${(name) => setQuery({...query, name})}>
      <label>At least <select onChange=${(event) => setQuery({...query, level: event.target.value === "debug" ? "" : event.target.value})}>
        ${LEVELS.map((each) => html`<option key=${each} value=${each} selected=${each === level}>${each}</option>`)}</select></label>
      <span class="hint">the last ${many(lines.length, "lines")}${lines.length === LINES ? ", there are more" : ""}</span></${Filter}>
    <${Failure} error=${error} />
    <div class="log" ref=${place} tabindex="0" role="log" aria-live="off" aria-label="Log"
      onScroll=${(event) => { const {scrollTop, clientHeight, scrollHeight} = event.target; isAtEnd.current = scrollTop + clientHeight > scrollHeight - 20; }}>
      ${lines.length ? lines.map((line) => html`<div key=${line.number} class=${`line ${line.level}`}>${line.text}</div>`) : html`<p class="empty">No line is like this.</p>`}</div>
    <p class="hint">The node keeps its last 2,000 lines in memory. The level that is logged at all is <code>log.default.level</code>; <code>rabbitmqctl set_log_level</code> changes it while the node runs.</p>`;
}
