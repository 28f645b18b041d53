"""/api/feature-flags and /api/deprecated-features.

Owns no state. The flags that are listed are those of RabbitMQ 3.13 that describe what this broker does; all are
enabled and stay so. The others of 3.13 are about what its nodes tell each other: scripts enable them after an upgrade.
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
OF_CLUSTER = {
    "quorum_queue": "Queues of type quorum",
    "stream_queue": "Queues of type stream",
}
"""Those of what is there with `cluster.urls` only."""
UNLISTED = frozenset(
    {
        "classic_mirrored_queue_version", "detailed_queues_endpoint", "feature_flags_v2", "listener_records_in_ets",
        "message_containers", "message_containers_deaths_v2", "quorum_queue_non_voters", "restart_streams",
        "stream_filtering", "stream_sac_coordinator_unblock_group", "stream_single_active_consumer",
        "stream_update_config_command", "tracking_records_in_ets",
    }
)  # fmt: skip
DEPRECATED = {
    "global_qos": "A channel's shared prefetch",
    "management_metrics_collection": "Statistics in the HTTP API",
    "transient_nonexcl_queues": "Transient queues that are not exclusive",
}


def _listed(call: Call) -> dict[str, str]:
    return FLAGS | OF_CLUSTER if call.node.has_cluster else FLAGS


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
            for name, text in sorted(_listed(call).items())
        ]
    )


async def enable(call: Call) -> web.Response:
    """PUT changes nothing: all flags are enabled already."""
    if call.path("name") not in FLAGS.keys() | OF_CLUSTER.keys() | UNLISTED:
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
