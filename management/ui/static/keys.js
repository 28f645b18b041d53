// Keys that hold on every page: `/` goes to its filter, from there ↓ to the first row below, ↑ and ↓ from row to row.
const FILTER = "main input[type=search]";
// What is in a row: the same one of the next row gets the focus.
const IN_ROW = "a[href], button, input[type=checkbox]";

const shown = (scope, what) => [...scope.querySelectorAll(what)].filter((each) => each.checkVisibility());

// Goes where a key leads; whether it leads anywhere.
export function goBy(event) {
  const {key, target} = event;
  if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey || target.closest?.("dialog")) return false;
  const step = {ArrowDown: 1, ArrowUp: -1}[key];
  let next;
  if (key === "/") next = /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) ? null : document.querySelector(FILTER);
  else if (step === 1 && target.matches?.(FILTER)) next = below(target);
  else if (step && target.matches?.(`main tbody :is(${IN_ROW})`)) next = inNextRow(target, step);
  next?.focus();
  return Boolean(next);
}

function below(filter) {
  return shown(document, "main tbody :is(a[href], button)")
    .find((each) => filter.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING);
}

function inNextRow(target, step) {
  const row = target.closest("tr");
  const at = shown(row, IN_ROW).indexOf(target);
  const rows = [...row.parentElement.rows].map((each) => shown(each, IN_ROW)).filter((each) => each.length);
  const next = rows[rows.findIndex((each) => each.includes(target)) + step];
  return next && next[Math.min(at, next.length - 1)];
}
