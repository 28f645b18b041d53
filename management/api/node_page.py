"""/api/burrowmq/pages/node and the live log: what the UI's page of the node shows.

Owns no state. Figures are those of /api/nodes, the store's own counters and the histograms that Prometheus has too,
each as (upper edge, count up to it), so that a page can tell the last seconds from the time before. Memory by part is
added up over the queues a few at a time. The log comes from the ring that the process keeps (`broker.report.log_tail`),
so that it can be read wherever the log goes.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any

from burrowmq.broker import inspect
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.product import VERSION
from burrowmq.broker.report.log_tail import SEVERITY
from burrowmq.management import process, settings
from burrowmq.management.aio import web
from burrowmq.management.answers import status
from burrowmq.management.answers.reply import Call, Route, bad_request, is_number, reply
from burrowmq.management.answers.turns import ROWS_PER_TURN
from burrowmq.management.api import overview, scrub

Row = dict[str, Any]
LINES_DEFAULT, LINES_MAX = 200, 2000
FILTER_MAX = 200


async def node_page(call: Call) -> web.Response:
    """The node: resources, memory by part, the loop, the disk, the store, listeners."""
    memory = await _memory(call.node)
    node, config = call.node, call.node.config
    row = overview.node_row(call)
    return reply(
        {
            "node": {
                **{key: row[key] for key in _NODE_KEYS},
                "version": VERSION,
                "codec": node.process.codec_name,
                "confirm": config.store.confirm,
                "python": status.process_document(call.host)["erlang_version"],
            },
            "memory": memory,
            "store": inspect.store_stats(node),
            "scrub": scrub.document(node),
            "spreads": _spreads(node),
            "listeners": status.listeners(node),
            "log": {"files": settings.log_files(config), "level": _level(call)},
        }
    )


_NODE_KEYS = (
    "name", "os_pid", "uptime", "db_dir", "config_files", "mem_used", "mem_limit", "mem_alarm", "disk_free",
    "disk_free_limit", "disk_free_alarm", "fd_used", "fd_total", "sockets_used", "sockets_total", "proc_used",
    "proc_total", "store_files_used", "store_files_total", "processors", "gc_num",
)  # fmt: skip


def _level(call: Call) -> str:
    return call.host.process.config.log.level


async def _memory(node: RunningNode) -> list[Row]:
    """Where the memory is, the largest first; what cannot be told apart is the last: code, interpreter, indexes."""
    queues = 0
    for count, (_, queue) in enumerate(inspect.each_queue(node), start=1):
        queues += int(queue.memory_bytes)
        if count % ROWS_PER_TURN == 0:
            await asyncio.sleep(0)
    store = inspect.store_stats(node)
    parts = {"queues": queues, "waiting for the disk": int(store.get("backlog_bytes", 0))}
    resident = process.resident_bytes()
    rows = [{"part": name, "bytes": size} for name, size in parts.items()]
    rest = max(0, resident - sum(parts.values()))
    return [
        *sorted(rows, key=lambda row: -int(str(row["bytes"]))),
        {"part": "the rest", "bytes": rest},
    ]


def _spreads(node: RunningNode) -> Row:
    """Histograms: `buckets` of (edge, count up to it), the last edge None; `total` where it is known."""
    stalls = inspect.loop_stalls(node)
    found: Row = {
        "stall_s": {
            "buckets": [[None if math.isinf(edge) else edge, count] for edge, count in stalls]
        }
    }
    for name, spread in inspect.store_spreads(node).items():
        buckets: list[list[float | None]] = [[edge, count] for edge, count in spread.buckets]
        found[name] = {"buckets": [*buckets, [None, spread.values]], "total": spread.total}
    return found


async def log_tail(call: Call) -> web.Response:
    """The last `lines` that are as severe as `level` and have `text` in them; whatever the log is written to."""
    level, text = call.query("level", "debug"), call.query("text")
    lines = call.query("lines", str(LINES_DEFAULT))
    if level not in SEVERITY:
        raise bad_request(f"level {level} is not supported. Try one of {', '.join(SEVERITY)}")
    if not is_number(lines) or len(text) > FILTER_MAX:
        raise bad_request(["not_int", "lines"] if len(text) <= FILTER_MAX else "text is too long")
    found = call.host.process.log_tail.last(min(int(lines), LINES_MAX), level, text)
    return reply({"lines": [line._asdict() for line in found]})


async def configuration(call: Call) -> web.Response:
    """Every key that this node knows, its value and who said so; passwords are hidden."""
    return reply({"rows": settings.effective(call.host.process), "files": _files(call)})


def _files(call: Call) -> list[str]:
    return list(call.host.process.config_files)


ROUTES = (
    Route("GET", "/api/burrowmq/pages/node", node_page, "monitoring"),
    Route("GET", "/api/burrowmq/log-tail", log_tail, "monitoring", True),
    Route("GET", "/api/burrowmq/configuration", configuration, "administrator", True),
)
