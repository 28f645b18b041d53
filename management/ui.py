"""A minimal page at `/`: totals and queues, read from the HTTP API by the browser.

Owns no state. No framework, no remote files; the policy below lets the page load only files of this server.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from burrowmq.management.aio import web

POLICY = (
    "default-src 'none'; connect-src 'self'; script-src 'self'; style-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>BurrowMQ</title>
<link rel="stylesheet" href="ui.css"></head>
<body><h1>BurrowMQ</h1><p id="overview"></p>
<table><thead><tr><th>Virtual host</th><th>Name</th><th>State</th><th>Ready</th><th>Unacked</th>
<th>Total</th><th>In memory</th><th>Policy</th></tr></thead><tbody id="queues"></tbody></table>
<script src="ui.js"></script></body></html>
"""

STYLE = """body{font:14px sans-serif;margin:2em}table{border-collapse:collapse}
th,td{border:1px solid #ccc;padding:.2em .6em;text-align:left}
"""

# textContent only: names of queues come from clients.
SCRIPT = """"use strict";
const columns = ["vhost", "name", "state", "messages_ready", "messages_unacknowledged", "messages",
  "messages_ram", "policy"];
async function get(path) {
  // A browser refuses a relative address when a password stands in the page's own.
  const answer = await fetch(location.origin + location.pathname + "api/" + path);
  if (!answer.ok) throw Error(`${answer.status} ${answer.statusText}`);
  return answer.json();
}
function line(queue) {
  const row = document.createElement("tr");
  for (const column of columns) {
    const cell = document.createElement("td");
    cell.textContent = queue[column] ?? "";
    row.append(cell);
  }
  return row;
}
function say(text) {
  document.getElementById("overview").textContent = text;
}
async function refresh() {
  const overview = await get("overview?columns=cluster_name,object_totals,queue_totals");
  const totals = overview.object_totals;
  const shown = `${overview.cluster_name}: ` +
    `${totals.connections} connections, ${totals.channels} channels, ${totals.queues} queues, ` +
    `${overview.queue_totals.messages ?? 0} messages`;
  say(shown);
  const page = await get("queues?page=1&page_size=500&columns=" + columns.join(","));
  document.getElementById("queues").replaceChildren(...page.items.map(line));
  const more = page.filtered_count - page.items.length;
  if (more > 0) say(`${shown}. The first ${page.items.length} queues:`);
}
function turn() {
  refresh().catch((error) => say(`The node gave no answer: ${error.message}`));
}
turn();
setInterval(turn, 5000);
"""


def add_routes(app: web.Application) -> None:
    """Serve the page and its two files. They hold nothing secret; the data behind them needs a login."""
    for path, body, kind in (
        ("/", PAGE, "text/html"),
        ("/ui.js", SCRIPT, "text/javascript"),
        ("/ui.css", STYLE, "text/css"),
    ):
        app.router.add_get(path, _static(body, kind))


def _static(body: str, kind: str) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(
            text=body, content_type=kind, headers={"Content-Security-Policy": POLICY}
        )

    return handler
