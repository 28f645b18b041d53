// A backup of everything that is durable by now, while the node runs; how far it is.
import {useEffect, useState} from "../vendor/hooks.js";
import {Outcome, fields, useAct} from "../act.js";
import {request} from "../api.js";
import {bytes, many, number, visible} from "../format.js";
import {html} from "../html.js";

const WAIT_MS = 1000;

// A node that knows of none was started again meanwhile; one that does not answer may be asked once more.
function unheard(job, error) {
  return error.status === 404 ? {...job, state: "failed", reason: "the node was stopped before it was done"} : {...job};
}

export function Backup() {
  const [state, act] = useAct();
  const [job, setJob] = useState(null);
  const isOver = ["done", "failed"].includes(job?.state);
  useEffect(() => {
    if (!job || isOver) return undefined;
    const timer = setTimeout(() => request("GET", "burrowmq/backup").then(setJob, (error) => setJob(unheard(job, error))), WAIT_MS);
    return () => clearTimeout(timer);
  }, [job]);
  const start = (event) => {
    const {directory} = fields(event);
    act(async () => setJob(await request("POST", "burrowmq/backup", {directory})));
  };
  return html`<details><summary>Back up</summary><form onSubmit=${start}>
      <label>Directory on the node's machine <input name="directory" required autocomplete="off" /></label>
      <p class="hint">It is made, or has to be empty. Clients are served meanwhile; docs/backup.md says how a node is started from it.</p>
      <${Outcome} state=${state} /><button type="submit" disabled=${state.isBusy || (job && !isOver)}>Start</button></form>
    ${job ? html`<p class=${job.state === "failed" ? "notice bad" : "notice"} role="status">${visible(job.directory)}: ${visible(job.state)}${job.reason ? `, ${visible(job.reason)}` : ""};
      ${number(job.files_done)} of ${many(job.files, "files")}, ${bytes(job.bytes_done)} of ${bytes(job.bytes)}, ${many(job.messages, "messages")} in ${many(job.queues, "queues")}.</p>` : null}</details>`;
}
