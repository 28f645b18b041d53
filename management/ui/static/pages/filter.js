// A filter that is asked for while it is typed; what is typed stays, whatever is polled meanwhile.
import {useEffect, useRef} from "../vendor/hooks.js";
import {html} from "../html.js";

const WAIT_MS = 250;

export function Filter({value, label = "Filter", hint, longest, onFilter, children}) {
  const input = useRef(null);
  const timer = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  useEffect(() => {
    // The address has changed by something else than typing: Back, a link.
    if (document.activeElement !== input.current) input.current.value = value ?? "";
  }, [value]);
  const later = (event) => {
    const text = event.target.value;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => onFilter(text), WAIT_MS);
  };
  const now = (event) => {
    event.preventDefault();
    clearTimeout(timer.current);
    onFilter(input.current.value);
  };
  return html`<form class="filter" role="search" onSubmit=${now}>
    <label>${label} <input ref=${input} type="search" defaultValue=${value ?? ""} onInput=${later} placeholder=${hint} maxlength=${longest} /></label>
    ${children}</form>`;
}
