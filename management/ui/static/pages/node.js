// The node: what it uses of what it has, how quick its loop and its disk are, what the store holds, where it listens.
import {useEffect, useRef, useState} from "../vendor/hooks.js";
import {usePage} from "../api.js";
import {Chart} from "../chart.js";
import {bytes, duration, number, visible} from "../format.js";
import {html} from "../html.js";
import {Bytes, Failure} from "../parts.js";
import {link} from "../route.js";
import {Backup} from "./backup.js";
import {Cluster} from "./cluster.js";
import {Scrub} from "./scrub.js";

const SECONDS = 5;
const KEPT = 720;
const CHARTS = [
  ["Loop stall", "stall_s", seconds, "how late the event loop ran its timers"],
  ["Sync", "sync_s", seconds, "how long it took to make a commit durable"],
  ["Commit size", "commit_bytes", bytes, "how much was written at once"],
];
const QUANTILES = [["median", 0.5, "--ready"], ["99 of 100", 0.99, "--unacked"]];
// The store's counters in the order of a person's questions; what is not named comes behind.
const STORE = [
  ["shared_live_messages", "Messages in the shared store", number], ["shared_live_bytes", "Live bytes in it", bytes],
  ["shared_total_bytes", "Bytes of its segments", bytes], ["shared_segments", "Segments", number],
  ["shared_compactions", "Compactions", number], ["shared_freed_bytes", "Freed by them and by deletion", bytes], ["shared_compaction_debt_bytes", "Garbage to be compacted", bytes], ["backlog_bytes", "Waiting for the disk", bytes],
  ["commits", "Commits", number], ["syncs", "Syncs", number], ["written", "Messages written", number],
  ["elided", "Acked before they were written", number], ["rewritten", "Queues' stores written anew", number],
  ["converting_queues", "Queues being converted", number], ["converted_segments", "Segments converted", number],
  ["unconverted_queues", "Queues not converted before the next start", number],
  ["lost", "Messages lost to bad records", number], ["rescues", "Syncs that failed and were made good", number],
  ["open_queues", "Open queues", number],
];

function seconds(value) {
  if (typeof value !== "number") return "–";
  return value < 0.001 ? `${Math.round(value * 1e6)} µs` : value < 1 ? `${Number((value * 1000).toPrecision(2))} ms` : `${value.toPrecision(2)} s`;
}

// The value below which a share of what was counted lies: within the class where it is, as if that were filled evenly.
export function quantile(buckets, share) {
  const all = buckets[buckets.length - 1][1];
  if (!all) return null;
  const wanted = all * share;
  let low = 0;
  let below = 0;
  for (const [edge, count] of buckets) {
    if (count >= wanted) return edge === null ? low : low + (edge - low) * ((wanted - below) / (count - below));
    [low, below] = [edge, count];
  }
  return low;
}

// What came between two looks.
function since(now, before) {
  return before ? now.map(([edge, count], at) => [edge, count - before[at][1]]) : now;
}

export function Node(props) {
  const {user} = props;
  const may = user.tags.some((tag) => tag === "administrator" || tag === "monitoring");
  if (!may) return html`<p class="empty">The node is for the tags monitoring and administrator. This user has: ${user.tags.join(", ")}.</p>`;
  return html`<${Shown} ...${props} />`;
}

function Shown(props) {
  const {data, error, at} = usePage(props, "burrowmq/pages/node", SECONDS);
  const history = useSpreads(data, at);
  if (!data) return html`<${Failure} error=${error} />`;
  const {node, memory, store, listeners, log} = data;
  return html`<p>${visible(node.name)} runs for ${duration(node.uptime / 1000)} as process ${node.os_pid}, BurrowMQ ${visible(node.version)} on ${visible(node.python)};
      codec ${visible(node.codec)}, a confirm means ${node.confirm === "fsync" ? "synced to disk" : visible(node.confirm)}; data in <code>${visible(node.db_dir)}</code>. <a href=${link(["node", "log"])}>Log</a></p>
    <${Resources} node=${node} />
    <section class="charts" aria-label="Since this page was opened">${CHARTS.map(([title, key, show]) => html`<${Chart} key=${key} ...${{title, show}}
      lines=${QUANTILES.map(([name, , colour]) => [name, colour])} times=${history.times} series=${history[key] ?? QUANTILES.map(() => [])} />`)}</section>
    <p class="hint">Each point is of the ${SECONDS} seconds before; the charts begin when this page is opened. Since the node's start:</p>
    <${SinceStart} spreads=${data.spreads} />
    <section class="columns"><div><h2>Memory by part</h2><${Memory} rows=${memory} limit=${node.mem_limit} /></div>
      <div><h2>Listeners</h2><table><caption class="unseen">Listeners</caption><tbody>${listeners.map((row) => html`<tr key=${row.protocol + row.interface + row.port}>
        <td>${visible(row.purpose)}</td><td>${visible(row.interface)}</td><td class="figure">${row.port}</td></tr>`)}</tbody></table></div></section>
    <${Cluster} isPaused=${props.isPaused} />
    <h2>Store</h2><${Store} store=${store} />
    <${Scrub} scrub=${data.scrub} mayStart=${props.user.tags.includes("administrator")} />
    ${props.user.tags.includes("administrator") ? html`<${Backup} />` : null}
    <h2>Files</h2><table><caption class="unseen">Files</caption><tbody>
      <tr><td>Configuration</td><td>${node.config_files.map((name) => html`<code key=${name}>${visible(name)} </code>`)}${node.config_files.length ? "" : "none"} <a href=${link(["admin", "configuration"])}>each key</a></td></tr>
      <tr><td>Log, from level ${visible(log.level)}</td><td>${log.files.map((name) => html`<code key=${name}>${visible(name)} </code>`)} <a href=${link(["node", "log"])}>its end, live</a></td></tr></tbody></table>`;
}

function SinceStart({spreads}) {
  return html`<table><caption class="unseen">Since the node's start</caption><thead><tr><th scope="col">What</th>${QUANTILES.map(([name]) => html`<th key=${name} scope="col" class="figure">${name}</th>`)}
      <th scope="col" class="figure">How many</th></tr></thead><tbody>${CHARTS.filter(([, key]) => spreads[key]).map(([title, key, show, words]) => {
    const {buckets} = spreads[key];
    return html`<tr key=${key}><td>${title} <span class="hint">${words}</span></td>${QUANTILES.map(([name, share]) => html`<td key=${name} class="figure">${show(quantile(buckets, share))}</td>`)}
      <td class="figure">${number(buckets[buckets.length - 1][1])}</td></tr>`;
  })}</tbody></table>`;
}

const exact = (value) => html`<${Bytes} value=${value} isAlone />`;

function Resources({node}) {
  const rows = [
    ["Memory", node.mem_used, node.mem_limit, exact, node.mem_alarm],
    ["File descriptors", node.fd_used, node.fd_total, number], ["Sockets", node.sockets_used, node.sockets_total, number],
    ["Open files of the store", node.store_files_used, node.store_files_total, number], ["Threads", node.proc_used, node.proc_total, number],
  ];
  return html`<table><caption class="unseen">Resources</caption><thead><tr><th scope="col">Resource</th><th scope="col" class="figure">Used</th>
      <th scope="col" class="figure">Of</th><th scope="col">Share</th></tr></thead><tbody>
    ${rows.map(([title, used, total, show, alarm]) => html`<tr key=${title}><td>${title}${alarm ? html` <strong class="bad">alarm</strong>` : ""}</td>
      <td class="figure">${show(used)}</td><td class="figure">${total ? show(total) : "no limit"}</td>
      <td>${total ? html`<meter min="0" max=${total} high=${total * 0.9} optimum="0" value=${Math.min(used, total)} aria-label=${title}></meter> <span class="hint">${Math.round((used / total) * 100)} %</span>` : ""}</td></tr>`)}
    <tr><td>Free disk${node.disk_free_alarm ? html` <strong class="bad">alarm</strong>` : ""}</td><td class="figure">${exact(node.disk_free)}</td>
      <td class="figure">${exact(node.disk_free_limit)}</td><td class="hint">at least; ${bytes(Math.max(0, node.disk_free - node.disk_free_limit))} to go until an alarm</td></tr>
  </tbody></table>`;
}

function Memory({rows, limit}) {
  const all = rows.reduce((sum, row) => sum + row.bytes, 0);
  return html`<table><caption class="unseen">Memory by part</caption><tbody>${rows.map((row) => html`<tr key=${row.part}><td>${row.part}</td><td class="figure">${bytes(row.bytes)}</td>
      <td class="figure">${all ? Math.round((row.bytes / all) * 100) : 0} %</td></tr>`)}
    <tr><td>in all</td><td class="figure">${bytes(all)}</td><td class="figure">of ${bytes(limit)}</td></tr></tbody></table>
    <p class="hint">The rest is the interpreter, code, connections and the store's indexes.</p>`;
}

function Store({store}) {
  const named = new Set(STORE.map(([key]) => key));
  const others = Object.keys(store).filter((key) => !named.has(key)).sort();
  const garbage = Math.max(0, (store.shared_total_bytes ?? 0) - (store.shared_live_bytes ?? 0));
  const cell = (key, title, text) => html`<div key=${key}><dt>${title}</dt><dd class="figure">${text}</dd></div>`;
  return html`<dl class="grid">${STORE.filter(([key]) => key in store).map(([key, title, show]) => cell(key, title, show(store[key])))}
      ${cell("garbage", "Garbage in all", bytes(garbage))}</dl>
    <details><summary>Other counters</summary><dl class="grid">${others.map((key) => cell(key, key.replaceAll("_", " "), number(store[key])))}</dl></details>`;
}

// What the spreads were between two looks, while this page is open: an hour at most.
function useSpreads(data, at) {
  const kept = useRef({times: [], last: null});
  const [, setCount] = useState(0);
  useEffect(() => {
    if (!data || !at) return;
    const {current} = kept;
    current.times = [...current.times, at.getTime() / 1000].slice(-KEPT);
    for (const [, key] of CHARTS) {
      const now = since(data.spreads[key]?.buckets ?? [[null, 0]], current.last?.[key]?.buckets);
      current[key] = QUANTILES.map(([, share], line) => [...(current[key]?.[line] ?? []), quantile(now, share)].slice(-KEPT));
    }
    current.last = data.spreads;
    setCount((count) => count + 1);
  }, [at]);
  return kept.current;
}
