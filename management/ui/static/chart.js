// A chart of a few lines over time, and the table behind it. The library comes with the first chart.
import {useEffect, useRef, useState} from "./vendor/hooks.js";
import {clock, number} from "./format.js";
import {html} from "./html.js";

const HEIGHT = 150;
const LONE_S = 60;
// What is counted has no half.
const WHOLE = Array.from({length: 15}, (_, at) => [1, 2, 5].map((step) => step * 10 ** at)).flat();

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// From the first to the last; a lone moment stands at the end of a minute.
function span(times) {
  if (times.length > 1) return [times[0], times.at(-1)];
  const last = times.length ? times[0] : LONE_S;
  return [last - LONE_S, last];
}

// Short ranges need the seconds.
function clocks(plot, seconds) {
  const isShort = !(seconds.length > 1 && seconds[1] - seconds[0] < 60);
  return seconds.map((second) => clock(new Date(second * 1000), isShort));
}

// The last figure that is known.
function last(line) {
  return line.findLast((value) => value !== null);
}

let styles = null;

// The library's own style sheet, once; without it lines lie beside their axes, but there are lines.
function styled() {
  styles ??= new Promise((done) => {
    const sheet = document.createElement("link");
    Object.assign(sheet, {rel: "stylesheet", href: new URL("./vendor/uplot.css", import.meta.url).href, onload: done, onerror: done});
    document.head.append(sheet);
  });
  return styles;
}

// `least`: the scale goes up to it at least.
export function Chart({title, lines, show, times, series, least = 0}) {
  const place = useRef(null);
  const chart = useRef(null);
  const [isTable, setTable] = useState(false);
  useEffect(() => {
    if (isTable) return undefined;
    let isGone = false;
    let watcher = null;
    const theme = new MutationObserver(() => draw());
    const draw = async () => {
      const [{default: Plot}] = await Promise.all([import("./vendor/uplot.js"), styled()]);
      if (isGone) return;
      chart.current?.destroy();
      const axis = {stroke: colour("--quiet"), grid: {stroke: colour("--line"), width: 1}, ticks: {show: false}, font: "11px system-ui"};
      const options = {
        width: place.current.clientWidth, height: HEIGHT, legend: {show: false}, cursor: {drag: {x: false, y: false}},
        scales: {x: {range: () => span(current.current[0])}, y: {range: (plot, low, high) => [0, Math.max(least, high * 1.1) || 1]}},
        axes: [{...axis, size: 30, space: 72, values: clocks}, {...axis, size: 64, values: (plot, values) => values.map(show), ...(show === number ? {incrs: WHOLE} : {})}],
        series: [{}, ...lines.map(([label, name]) => ({label, stroke: colour(name), width: 1.5, points: {show: (plot, at) => plot.data[at].filter((value) => value !== null).length === 1, size: 4, fill: colour(name)}}))],
      };
      chart.current = new Plot(options, current.current, place.current);
      watcher ??= new ResizeObserver(() => chart.current?.setSize({width: place.current.clientWidth, height: HEIGHT}));
      watcher.observe(place.current);
    };
    draw();
    theme.observe(document.documentElement, {attributes: true, attributeFilter: ["data-theme"]});
    return () => {
      isGone = true;
      theme.disconnect();
      watcher?.disconnect();
      chart.current?.destroy();
      chart.current = null;
    };
  }, [isTable]);
  const current = useRef([]);
  current.current = [times, ...series.map((line) => (line.length ? line : times.map(() => null)))];
  useEffect(() => chart.current?.setData(current.current), [times]);
  return html`<figure>
    <figcaption><h2>${title}</h2>
      <button type="button" aria-pressed=${isTable} onClick=${() => setTable(!isTable)}>Table</button>
      <div class="keys">${lines.map(([label, name], at) => html`<span key=${label} class=${`key key${name}`}>${label}
      ${series[at].length ? html` <b>${show(last(series[at]))}</b>` : null}</span>`)}</div></figcaption>
    ${isTable ? html`<div class="scroll"><table><caption class="unseen">${title}</caption>
      <thead><tr><th scope="col">Time</th>${lines.map(([label]) => html`<th scope="col" class="figure" key=${label}>${label}</th>`)}</tr></thead>
      <tbody>${times.map((time, at) => html`<tr key=${time}><td>${clock(new Date(time * 1000))}</td>
        ${series.map((line, index) => html`<td class="figure" key=${index}>${show(line[at])}</td>`)}</tr>`).slice(-20).reverse()}</tbody></table></div>`
    : html`<div class="plot" ref=${place} aria-hidden="true"></div>`}
  </figure>`;
}
