// The address holds all state: #/page/part/part?key=value.

export function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  return {
    parts: path.split("/").filter(Boolean).map(decode),
    query: Object.fromEntries(new URLSearchParams(query)),
  };
}

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function link(parts, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  const text = new URLSearchParams(kept).toString();
  return "#/" + parts.map(encodeURIComponent).join("/") + (text ? `?${text}` : "");
}

export function path(...parts) {
  return parts.map(encodeURIComponent).join("/");
}
