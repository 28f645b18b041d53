// The scrubber: when everything that is stored was read again, how far it is now, what it found; a pass that begins now.
import {Outcome, useAct} from "../act.js";
import {request} from "../api.js";
import {bytes, duration, many, moment, number, visible} from "../format.js";
import {html} from "../html.js";

export function Scrub({scrub, mayStart}) {
  const [state, act] = useAct();
  const start = () => act(async () => { await request("POST", "burrowmq/scrub", {}); });
  const row = (title, text) => html`<tr><td>${title}</td><td>${text}</td></tr>`;
  const {last, last_complete: complete} = scrub;
  return html`<h2>Scrubber</h2><table><caption class="unseen">Scrubber</caption><tbody>
      ${row("Now", scrub.running ? html`<progress max=${Math.max(scrub.bytes_total, 1)} value=${scrub.bytes_done} aria-label="Pass"></progress>
        ${bytes(scrub.bytes_done)} of ${bytes(scrub.bytes_total)}, ${bytes(scrub.bytes_per_s)} a second, since ${moment(new Date(scrub.began_at))}`
    : scrub.next_at ? `the next pass begins ${moment(new Date(scrub.next_at))}` : scrub.period_s ? "about to begin" : "off: a pass begins when somebody asks")}
      ${scrub.position ? row("Position", visible(scrub.position)) : null}
      ${row("Last complete pass", complete ? html`${moment(new Date(complete.ended_ms))}, ${bytes(complete.bytes)} in ${duration((complete.ended_ms - complete.began_ms) / 1000)}` : "none yet")}
      ${row("Damaged messages", `${number(scrub.running ? scrub.found : last?.found ?? 0)} in ${scrub.running ? "this" : "the last"} pass, ${number(scrub.quarantined)} in quarantine`)}
      ${scrub.unread_queues ? row("Cannot be read", html`<strong class="bad">${many(scrub.unread_queues, "queues")}</strong>: tried again until the disk answers`) : null}
      ${scrub.damaged_files.map(({path, what}) => row("Damaged file", html`<strong class="bad">${visible(what)}</strong> <code>${visible(path)}</code>`))}
    </tbody></table>
    ${mayStart ? html`<p><button type="button" disabled=${state.isBusy} onClick=${start}>Read everything again now</button></p><${Outcome} state=${state} />` : null}`;
}
