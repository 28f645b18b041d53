"""Read-only rows about everything in the node, with RabbitMQ's field names.

Owns no state. The HTTP API, Prometheus and (through the API) burrowctl ask it for lists of dicts. Whoever only reads
queues, channels, sessions and exchanges does so here; commands and messages of `management`, which change things, use
the objects themselves. Rows are plain Python values: strings, numbers, booleans, None, lists, dicts.

Invariants: nothing here changes the broker, nothing here waits, and a row costs O(columns asked for). A field
that has no counterpart here (mirrors, Erlang process ids) has the value, or the shape, that RabbitMQ shows on one node.

Source: the info keys of rabbit_amqqueue, rabbit_exchange, rabbit_channel, rabbit_reader and rabbit_binding (3.13).
"""

from __future__ import annotations

from burrowmq.broker.inspect.connections import (
    alarms,
    channel_details,
    channel_row,
    channels,
    connection_row,
    connections,
    each_session,
    session_state,
    user_name,
    vhost_name,
)
from burrowmq.broker.inspect.node import (
    TOTALS,
    counters,
    limits,
    loop_stalls,
    object_totals,
    permissions,
    publisher_count,
    store_stats,
    totals,
    users,
    vhost_row,
    vhosts,
)
from burrowmq.broker.inspect.parameters import (
    global_parameters,
    parameters,
    policies,
    policy_row,
    topic_permissions,
    user_limits,
    vhost_limits,
)
from burrowmq.broker.inspect.queues import (
    CTL_QUEUE_COLUMNS,
    DETAILED_QUEUE_COLUMNS,
    NUMBERS_OF_QUEUES,
    QUEUE_COLUMNS,
    REDUCED_QUEUE_COLUMNS,
    consumer_row,
    consumers,
    each_queue,
    each_vhost,
    iter_queues,
    queue,
    queue_row,
    queues,
)
from burrowmq.broker.inspect.topology import (
    Bound,
    bindings,
    bindings_from,
    bindings_to,
    bound_from,
    bound_row,
    each_bound,
    exchange_row,
    exchanges,
    find_binding,
    properties_key,
)
from burrowmq.broker.inspect.values import (
    DELIVERED,
    Table,
    message_stats,
    octets,
    pid,
    plain,
    typed,
)

__all__ = [
    "Bound",
    "CTL_QUEUE_COLUMNS",
    "DELIVERED",
    "DETAILED_QUEUE_COLUMNS",
    "NUMBERS_OF_QUEUES",
    "QUEUE_COLUMNS",
    "REDUCED_QUEUE_COLUMNS",
    "TOTALS",
    "Table",
    "alarms",
    "bindings",
    "bindings_from",
    "bindings_to",
    "bound_from",
    "bound_row",
    "channel_details",
    "channel_row",
    "channels",
    "connection_row",
    "connections",
    "consumer_row",
    "consumers",
    "counters",
    "each_bound",
    "each_queue",
    "each_session",
    "each_vhost",
    "exchange_row",
    "exchanges",
    "find_binding",
    "global_parameters",
    "iter_queues",
    "limits",
    "loop_stalls",
    "message_stats",
    "object_totals",
    "octets",
    "parameters",
    "permissions",
    "pid",
    "plain",
    "policies",
    "policy_row",
    "properties_key",
    "publisher_count",
    "queue",
    "queue_row",
    "queues",
    "session_state",
    "store_stats",
    "topic_permissions",
    "totals",
    "typed",
    "user_limits",
    "user_name",
    "users",
    "vhost_limits",
    "vhost_name",
    "vhost_row",
    "vhosts",
]
