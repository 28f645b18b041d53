// Move what is in a queue to another: a shovel that is gone when it has done so.
import {Outcome, fields, useAct} from "../act.js";
import {request} from "../api.js";
import {visible} from "../format.js";
import {html} from "../html.js";
import {path} from "../route.js";

export function Move({vhost, name, onDone}) {
  const [state, act] = useAct(onDone);
  const move = (event) => {
    const {target} = fields(event);
    const here = `amqp:///${encodeURIComponent(vhost)}`;
    const value = {
      "src-uri": here, "src-queue": name, "dest-uri": here, "dest-queue": target,
      "ack-mode": "on-confirm", "src-delete-after": "queue-length",
    };
    act(() => request("PUT", `parameters/shovel/${path(vhost, `Move from ${name}`)}`, {value}), `They are on their way to ${visible(target)}; Admin, Shovels says how far.`);
  };
  return html`<details><summary>Move messages</summary><form class="filter" onSubmit=${move}>
      <label>To the queue <input name="target" required autocomplete="off" /></label><button type="submit">Move</button></form>
    <p class="hint">All that are ready now, in their order; each is safe there before it is gone here. The queue is made if there is none.</p></details>
    <${Outcome} state=${state} />`;
}
