"""/api/feature-flags, /api/deprecated-features, and the node's small paths: authentication attempts, reset, rebalance.

Owns no state. The flags are those of RabbitMQ 3.13 that describe what this broker does; all are enabled and stay so.
Paths for what one node cannot do (rebalance) answer as RabbitMQ does on a single node: done, nothing changed.
"""

from __future__ import annotations

import asyncio

from broker import inspect
from management import commands
from management.aio import web
from management.reply import Call, Route, bad_request, no_content, not_found, reply

FLAGS = {
    "classic_queue_type_delivery_support": "Consumers of classic queues are told who delivers",
    "direct_exchange_routing_v2": "Routes of direct exchanges are looked up in one step",
    "drop_unroutable_metric": "Unroutable messages that are dropped are counted",
    "empty_basic_get_metric": "basic.get on an empty queue is counted",
    "implicit_default_bindings": "Default bindings are implicit",
    "user_limits": "Users may have limits of connections and channels",
    "virtual_host_metadata": "Virtual hosts have a description and tags",
}
DEPRECATED = {
    "global_qos": "A channel's shared prefetch",
    "management_metrics_collection": "Statistics in the HTTP API",
    "transient_nonexcl_queues": "Transient queues that are not exclusive",
}


async def flags(call: Call) -> web.Response:
    """All of them."""
    return reply(
        [
            {
                "name": name,
                "desc": text,
                "doc_url": "",
                "provided_by": "rabbit",
                "stability": "stable",
                "state": "enabled",
            }
            for name, text in sorted(FLAGS.items())
        ]
    )


async def enable(call: Call) -> web.Response:
    """PUT: they are."""
    if call.path("name") not in FLAGS:
        raise bad_request("unsupported")
    return no_content()


async def deprecated(call: Call) -> web.Response:
    """What RabbitMQ 4 took away or is about to, and stays here."""
    return reply(
        [
            {
                "name": name,
                "desc": text,
                "deprecation_phase": "permitted_by_default",
                "doc_url": "",
                "provided_by": "rabbit",
                "state": "permitted",
            }
            for name, text in sorted(DEPRECATED.items())
        ]
    )


async def deprecated_in_use(call: Call) -> web.Response:
    """Whether any is in use is not tracked: they are here to stay."""
    return reply([])


def _check_node(call: Call) -> None:
    if call.path("node") != call.node.name:
        raise not_found()


async def attempts(call: Call) -> web.Response:
    """Logins since the start, by protocol."""
    _check_node(call)
    counters = inspect.counters(call.node)
    tried, failed = counters["auth_attempts"], counters["auth_failures"]
    row = {
        "protocol": "amqp091",
        "auth_attempts": tried,
        "auth_attempts_failed": failed,
        "auth_attempts_succeeded": tried - failed,
    }
    return reply([row])


async def attempts_by_source(call: Call) -> web.Response:
    """Sources are not tracked, which is RabbitMQ's default as well."""
    _check_node(call)
    return reply([])


async def rebalance(call: Call) -> web.Response:
    """Everything is on the one node that there is."""
    return no_content()


async def start_vhost(call: Call) -> web.Response:
    """Every vhost of a running node runs."""
    call.target_vhost()
    _check_node(call)
    return no_content()


async def listeners(call: Call) -> web.Response:
    """`{"accept": false}`: no new AMQP connections; true: again."""
    accept = (await call.body()).get("accept")
    if not isinstance(accept, bool):
        raise bad_request(["not_boolean", accept])
    await commands.accept_connections(call.node, accept)
    return no_content()


async def collect_garbage(call: Call) -> web.Response:
    """A full collection."""
    commands.collect_garbage()
    return no_content()


async def os_environment(call: Call) -> web.Response:
    """The process's variables with RabbitMQ's and our names, without secrets."""
    return reply(commands.os_environment())


async def certificates(call: Call) -> web.Response:
    """The listeners with TLS and their certificates as PEM."""
    return reply(await asyncio.to_thread(commands.certificates, call.node))


async def log(call: Call) -> web.Response:
    """The end of the log file."""
    text = call.query("lines", "50")
    if not text.isdigit():
        raise bad_request(["not_int", "lines"])
    lines = await asyncio.to_thread(commands.log_tail, call.node, min(int(text), 10_000))
    return reply({"lines": lines})


ROUTES = (
    Route("GET", "/api/feature-flags", flags, "administrator"),
    Route("PUT", "/api/feature-flags/{name}/enable", enable, "administrator"),
    Route("GET", "/api/deprecated-features", deprecated, "administrator"),
    Route("GET", "/api/deprecated-features/used", deprecated_in_use, "administrator"),
    Route("GET", "/api/auth/attempts/{node}", attempts, "monitoring"),
    Route("GET", "/api/auth/attempts/{node}/source", attempts_by_source, "monitoring"),
    Route("POST", "/api/rebalance/queues", rebalance, "administrator"),
    Route("POST", "/api/vhosts/{vhost}/start/{node}", start_vhost, "administrator"),
    Route("POST", "/api/burrowmq/listeners", listeners, "administrator"),
    Route("POST", "/api/burrowmq/collect-garbage", collect_garbage, "administrator"),
    Route("GET", "/api/burrowmq/os-environment", os_environment, "administrator"),
    Route("GET", "/api/burrowmq/certificates", certificates, "administrator"),
    Route("GET", "/api/burrowmq/log", log, "administrator"),
)
