// One change at a time: it is asked for, and what came of it is shown where it was asked for.
import {useState} from "./vendor/hooks.js";
import {html} from "./html.js";
import {Failure} from "./parts.js";

// `act(doIt, done)` runs a change; `done` is what to say of it. Resolves to whether it worked.
export function useAct(onDone) {
  const [state, setState] = useState({});
  const act = async (doIt, done) => {
    setState({isBusy: true});
    try {
      await doIt();
      setState({done});
      onDone?.();
      return true;
    } catch (error) {
      setState({error: error instanceof SyntaxError ? {status: 0, message: `This is no JSON: ${error.message}`} : error});
      return false;
    }
  };
  return [state, act];
}

let said = null;

// What came of a change that leads to another page: told there.
export function report(words) {
  said = words;
}

export function reported() {
  const words = said;
  said = null;
  return words;
}

export function Outcome({state}) {
  return html`<${Failure} error=${state.error} />${state.done ? html`<p class="notice good" role="status">${state.done}</p>` : null}`;
}

// The fields of a form that was sent, by name; the browser does nothing with it.
export function fields(event) {
  event.preventDefault();
  return Object.fromEntries(new FormData(event.target));
}
