"""/api/reset, /api/config/effective and the memory of a node in parts of a hundred.

Owns no state. Source: rabbit_mgmt_wm_reset, rabbit_mgmt_wm_environment, rabbit_mgmt_wm_node_memory (3.13).
"""

from __future__ import annotations

from typing import Any

from burrowmq.management.aio import web
from burrowmq.management.answers import status
from burrowmq.management.answers.reply import Call, Route, no_content, reply
from burrowmq.management.api import burrowmq

NODE_MEMORY = "/api/nodes/{node}/memory"


async def reset(call: Call) -> web.Response:
    """DELETE: rates and their past begin anew; counters since the start go on, for Prometheus counts by them."""
    if "node" in call.request.match_info:
        call.check_node()
    call.rates.clear()
    return no_content()


async def effective_configuration(call: Call) -> web.Response:
    """Every key with the value that holds, passwords left out."""
    return await burrowmq.environment(call)


async def relative_memory(call: Call) -> web.Response:
    """Each part as so many hundredths of all, rounded up."""
    call.check_node()
    found = status.memory(call.node)
    parts = {name: size for name, size in found.items() if isinstance(size, int)}
    whole = max(1, sum(parts.values()))
    row: dict[str, Any] = {"total": 100}
    row.update((name, -(-size * 100 // whole)) for name, size in parts.items())
    return reply({"memory": row})


async def tables(call: Call) -> web.Response:
    """Erlang's tables, of which there are none; RabbitMQ's answer where a filter finds none."""
    call.check_node()
    return reply({"ets_tables_memory": "no_tables"})


ROUTES = (
    Route("DELETE", "/api/reset", reset, "administrator", is_kept=False),
    Route("DELETE", "/api/reset/{node}", reset, "administrator", is_kept=False),
    Route("GET", "/api/config/effective", effective_configuration, "administrator"),
    Route("GET", f"{NODE_MEMORY}/relative", relative_memory, "monitoring"),
    Route("GET", f"{NODE_MEMORY}/ets", tables, "monitoring"),
    Route("GET", f"{NODE_MEMORY}/ets/relative", tables, "monitoring"),
    Route("GET", f"{NODE_MEMORY}/ets/{{filter}}", tables, "monitoring"),
    Route("GET", f"{NODE_MEMORY}/ets/{{filter}}/relative", tables, "monitoring"),
)
