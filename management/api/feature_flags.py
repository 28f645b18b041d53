"""/api/feature-flags and /api/deprecated-features.

Owns no state. The flags are those of RabbitMQ 3.13 that describe what this broker does; all are enabled and stay so.
"""

from __future__ import annotations

from burrowmq.management.aio import web
from burrowmq.management.answers.reply import Call, Route, bad_request, no_content, reply

FLAGS = {
    "classic_queue_type_delivery_support": "Consumers of classic queues are told who delivers",
    "direct_exchange_routing_v2": "Routes of direct exchanges are looked up in one step",
    "drop_unroutable_metric": "Unroutable messages that are dropped are counted",
    "empty_basic_get_metric": "basic.get on an empty queue is counted",
    "implicit_default_bindings": "Default bindings are implicit",
    "maintenance_mode_status": "A node says that it is being drained",
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
    """PUT changes nothing: all flags are enabled already."""
    if call.path("name") not in FLAGS:
        raise bad_request("unsupported")
    return no_content()


async def deprecated(call: Call) -> web.Response:
    """Features that RabbitMQ 4 has removed or will remove, and that stay here."""
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
    """An empty list: nobody tracks which are in use, because they stay here."""
    return reply([])


ROUTES = (
    Route("GET", "/api/feature-flags", flags, "administrator"),
    Route("PUT", "/api/feature-flags/{name}/enable", enable, "administrator"),
    Route("GET", "/api/deprecated-features", deprecated, "administrator"),
    Route("GET", "/api/deprecated-features/used", deprecated_in_use, "administrator"),
)
