// Figures, times and names as people read them.

const whole = new Intl.NumberFormat("en", {maximumFractionDigits: 0});
const some = new Intl.NumberFormat("en", {maximumSignificantDigits: 3});

export function number(value) {
  return typeof value === "number" ? whole.format(value) : "–";
}

// So many of them, in words: a noun that is given in the plural loses it where there is one.
export function many(count, word) {
  return `${number(count)} ${noun(count, word)}`;
}

// The same without the figure.
export function noun(count, word) {
  return count === 1 ? word.replace(/ies$/, "y").replace(/s$/, "") : word;
}

export function rate(value) {
  if (typeof value !== "number") return "–";
  return (Math.abs(value) < 10 ? some.format(value) : whole.format(value)) + "/s";
}

// In a column: what has no decimal has room for it behind, so that the points stand below each other.
export function rateCell(value) {
  if (typeof value !== "number") return "–";
  if (value > 0 && value < 0.05) return "<0.1/s";
  return value !== 0 && Math.abs(value) < 9.95 ? `${value.toFixed(1)}/s` : `${whole.format(value)}/s\u2008\u2007`;
}

export function bytes(value) {
  if (typeof value !== "number") return "–";
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (Math.abs(value) >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit ? some.format(value) : whole.format(value)} ${units[unit]}`;
}

export function milliseconds(value) {
  if (typeof value !== "number") return "–";
  for (const [size, name] of [[86400000, "d"], [3600000, "h"], [60000, "min"], [1000, "s"]]) {
    if (value >= size && value % size === 0) return `${whole.format(value / size)} ${name}`;
  }
  return `${whole.format(value)} ms`;
}

export function duration(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${some.format(seconds / 3600)} h`;
  return `${whole.format(seconds / 86400)} days`;
}

// One choice for all times on all pages: those of this machine, or UTC.
let zone;

export function inUtc(isUtc) {
  zone = isUtc ? "UTC" : undefined;
}

export function clock(date, isShort) {
  return date.toLocaleTimeString("en", {hourCycle: "h23", hour: "2-digit", minute: "2-digit", second: isShort ? undefined : "2-digit", timeZone: zone});
}

export function moment(date) {
  return date.toLocaleString([], {hour12: false, timeZone: zone}) + (zone ? " UTC" : "");
}

// Control characters and the marks that turn text around are shown as such; an empty name has a word.
export function visible(text, empty = "(empty)") {
  if (text === "" || text === undefined || text === null) return empty;
  return String(text).replace(
    /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (sign) => "\\u" + sign.charCodeAt(0).toString(16).padStart(4, "0"),
  );
}

// A long name keeps both ends: they tell names of one family apart.
export function short(text, length = 48) {
  const shown = visible(text);
  if (shown.length <= length) return shown;
  const half = Math.floor((length - 1) / 2);
  return `${shown.slice(0, half)}…${shown.slice(-half)}`;
}
