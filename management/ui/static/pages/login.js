// Name and password, once; what the node answers, in plain words.
import {useLayoutEffect, useRef, useState} from "../vendor/hooks.js";
import {request} from "../api.js";
import {html} from "../html.js";

const WORDS = {
  "Login failed": "The name or the password is wrong.",
  "User can only log in via localhost":
    "This user may log in on the node's own machine only. loopback_users.guest = false in rabbitmq.conf changes that for guest; a user of your own is better.",
  "Not management user":
    "The password is right, but this user has none of the tags management, policymaker, monitoring and administrator: rabbitmqctl set_user_tags NAME management.",
};

export function Login({onDone, isAgain}) {
  const [state, setState] = useState({});
  const name = useRef(null);
  useLayoutEffect(() => name.current.focus(), []);
  const submit = async (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    setState({isBusy: true});
    try {
      await request("POST", "login", {username: form.get("username"), password: form.get("password")});
      onDone();
      setState({});
    } catch (error) {
      setState({text: error.status ? WORDS[error.message] ?? error.message : "The node gives no answer."});
    }
  };
  return html`<h1>BurrowMQ</h1>
    <p class="hint">${isAgain ? "The node knows this login no more: it was started anew, the time was up, or the password was changed. The page stays as it is." : `Message broker at ${location.host}`}</p>
    <form onSubmit=${submit}>
      <label>Name <input ref=${name} name="username" autocomplete="username" required autofocus=${Boolean(isAgain)} /></label>
      <label>Password <input name="password" type="password" autocomplete="current-password" required /></label>
      ${state.text ? html`<p class="notice bad" role="alert">${state.text}</p>` : null}
      <button type="submit" class="main" disabled=${state.isBusy}>Log in</button>
    </form>`;
}
