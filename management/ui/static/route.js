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

// The virtual host that is chosen stays chosen, unless the query says otherwise.
export function link(parts, query) {
  const kept = Object.entries({vhost: chosen(), ...query}).filter(([, value]) => value !== "" && value !== undefined && value !== null);
  const text = new URLSearchParams(kept).toString();
  return "#/" + parts.map(encodeURIComponent).join("/") + (text ? `?${text}` : "");
}

const last = {};

function chosen() {
  if (last.hash !== location.hash) Object.assign(last, {hash: location.hash, vhost: parse(location.hash).query.vhost});
  return last.vhost;
}

export function path(...parts) {
  return parts.map(encodeURIComponent).join("/");
}
