"""One sample of everything in the node, in slices.

Owns no state. `steps` reads counters that the broker keeps anyway, gives them to `Rates` (the last two of everything)
and to its `History` (the past of what there is room for), and yields every few milliseconds, so that whoever drives it
can let the loop go on: the server between two timers, tests by hand. Nothing here is called per message, and nothing
waits. What is counted in a virtual host is counted on its channels and connections; closed ones have left theirs in
`Vhost.past`. Connections on which nothing has moved are passed over (`answers.still`), once there are more objects than
have a history.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Sequence
from operator import add, attrgetter

from burrowmq.broker import inspect
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.session.session import Session
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.management import process
from burrowmq.management.answers import rates as keys
from burrowmq.management.answers.rates import Rates
from burrowmq.management.answers.still import Seen
from burrowmq.management.history import history as kinds
from burrowmq.management.history.history import (
    CHURN,
    DELIVERIES,
    FINE,
    OCTETS,
    History,
    Kind,
)

SLICE_S = 0.005
# So many objects are read between two looks at the clock.
CHUNK = 50
# To pass over a connection that has been still is a fiftieth of that, over a dormant queue a hundredth.
STILL_CHUNK = 2500
DORMANT_CHUNK = 5000

# The node's counters by RabbitMQ's names.
MESSAGE_COUNTERS = {
    "publish": "messages_published",
    "confirm": "messages_confirmed",
    "return_unroutable": "messages_unroutable_returned",
    "drop_unroutable": "messages_unroutable_dropped",
    "deliver": "messages_delivered_manual_ack",
    "deliver_no_ack": "messages_delivered_auto_ack",
    "get": "messages_get_manual_ack",
    "get_no_ack": "messages_get_auto_ack",
    "get_empty": "messages_get_empty",
    "ack": "messages_acknowledged",
    "redeliver": "messages_redelivered",
}
CHURN_COUNTERS = {
    "connection_created": "connections_opened",
    "connection_closed": "connections_closed",
    "channel_created": "channels_opened",
    "channel_closed": "channels_closed",
    "queue_declared": "queues_declared",
    "queue_created": "queues_created",
    "queue_deleted": "queues_deleted",
}
COUNTED = DELIVERIES[:-1]  # the last is the sum of the first four
DELIVERED = len(inspect.DELIVERED)
of_queue = attrgetter("publish", *COUNTED)
of_channel = attrgetter(*FINE, *COUNTED)
of_churn = attrgetter(*(CHURN_COUNTERS[name] for name in CHURN))
of_node = attrgetter(*(MESSAGE_COUNTERS[name] for name in (*FINE, *COUNTED)))

Values = tuple[int, ...]
Sampled = tuple[Kind, Hashable, Values]
# What a virtual host's connections add to its figures, while there are none.
NOTHING: Values = (0,) * (len(FINE) + len(COUNTED) + len(OCTETS))
EMPTY_QUEUE: Values = (0,) * len(kinds.QUEUE.columns)


def steps(node: RunningNode, rates: Rates, now_ms: int) -> Iterator[None]:
    """Take one sample; it is complete when the iterator ends."""
    history = rates.history
    rates.begin(now_ms)
    history.begin(now_ms)
    deadline = time.perf_counter() + SLICE_S
    for count, sampled in enumerate(_everything(node, rates)):
        if sampled is not None:
            kind, key, values = sampled
            # Of a channel even the first sample tells since when it has been idle.
            if kind is kinds.CHANNEL or any(values):
                rates.add(kind.columns, key, values)
            history.add(kind, key, values)
        if (sampled is None or count % CHUNK == CHUNK - 1) and time.perf_counter() > deadline:
            yield
            deadline = time.perf_counter() + SLICE_S
    rates.end()
    history.end()
    yield


def _everything(node: RunningNode, rates: Rates) -> Iterator[Sampled | None]:
    """What there is, each once; None now and then while there is nothing to sample."""
    history = rates.history
    past: dict[Vhost, Values] = {
        vhost: (*of_channel(vhost.past), *(getattr(vhost.past, name) for name in OCTETS))
        for vhost in node.vhosts.values()
    }
    yield from _connections(node, rates)
    ready = unacked = 0
    for vhost in list(node.vhosts.values()):
        vhost_ready = vhost_unacked = 0
        for each in _awake(list(vhost.queues.values()), history):
            if each is None:
                yield None
                continue
            waiting, handed_out = each.ready_count, each.unacked_count
            vhost_ready += waiting
            vhost_unacked += handed_out
            counters = of_queue(each.metrics)
            yield (
                kinds.QUEUE,
                keys.queue_key(vhost.name, each.name),
                (waiting + handed_out, waiting, handed_out, *_with_sum(counters, 1)),
            )
        for exchange in list(vhost.exchanges.values()):
            counted = (exchange.publish_in, exchange.publish_out)
            yield kinds.EXCHANGE, keys.exchange_key(vhost.name, str(exchange.name)), counted
        ready += vhost_ready
        unacked += vhost_unacked
        lengths = (vhost_ready + vhost_unacked, vhost_ready, vhost_unacked)
        found = rates.still.total(vhost, past.get(vhost, NOTHING))
        values = (*_with_sum(found[: -len(OCTETS)], len(FINE)), *found[-len(OCTETS) :])
        yield kinds.VHOST, keys.vhost_key(vhost.name), (*lengths, *values)
    for key in history.unsampled(kinds.QUEUE):
        owner = node.vhosts.get(key[0])
        if owner is not None and key[1] in owner.queues:
            yield kinds.QUEUE, key, EMPTY_QUEUE
    yield kinds.NODE, keys.NODE_KEY, _node(node, ready, unacked)


def _awake(queues: Sequence[QueuePort], history: History) -> Iterator[QueuePort | None]:
    """Those to which something has happened, and the others while the history has places for them.

    In a dormant queue there is nothing to be read: a hundred thousand of them cost a look at each.
    """
    for start in range(0, len(queues), DORMANT_CHUNK):
        chunk = queues[start : start + DORMANT_CHUNK]
        if not history.has_room:
            awake = [each for each in chunk if not each.is_dormant]
            if len(awake) < len(chunk):
                history.note_refused()
            chunk = awake
        yield from chunk
        yield None


def _connections(node: RunningNode, rates: Rates) -> Iterator[Sampled | None]:
    """Those that something has happened to, with their channels; of the others those that have a history."""
    still, history = rates.still, rates.history
    sessions = list(node.sessions)
    for start in range(0, len(sessions), STILL_CHUNK):
        chunk = sessions[start : start + STILL_CHUNK]
        if not history.has_room:
            chunk = _moved(chunk, rates)
        for session in chunk:
            rates.wake(still.wake(session))
            yield from _connection(session, rates)
        yield None
    rates.drop(still.keep(node.sessions.keys(), node.vhosts.values()))
    for kind in (kinds.CONNECTION, kinds.CHANNEL):
        for key in history.unsampled(kind):
            values = rates.kept(key)
            if values is not None:
                yield kind, key, values


def _moved(sessions: Sequence[Session], rates: Rates) -> list[Session]:
    """Those of these that have to be read; the others rest."""
    moved, still = rates.still.split(sessions, _octets)
    for session in still:
        if rates.rest(rates.still.keys(session)):
            rates.still.rest(session)
        else:
            moved.append(session)
    if len(moved) < len(sessions):
        rates.history.note_refused()
    return moved


def _connection(session: Session, rates: Rates) -> Iterator[Sampled]:
    """A connection and its channels."""
    wire = session.wire
    vhost = None if session.entered is None else session.entered.vhost
    found = NOTHING[: -len(OCTETS)]
    known: list[Hashable] = []
    for channel in list(session.channels.values()):
        counters = of_channel(channel.metrics)
        found = tuple(map(add, found, counters))
        key = keys.channel_key(f"{session.name} ({channel.number})")
        known.append(key)
        yield kinds.CHANNEL, key, _with_sum(counters, len(FINE))
    if vhost is not None:
        key = keys.connection_key(session.name)
        known.append(key)
        moved = (0, 0) if wire is None else (wire.bytes_received, wire.bytes_sent)
        rates.still.note(session, Seen(_octets(session), tuple(known), vhost, (*found, *moved)))
        yield kinds.CONNECTION, key, moved


def _octets(session: Session) -> int | None:
    """What has moved on its socket, heartbeats apart; None: that says nothing."""
    wire = session.wire
    if (
        wire is None or wire.pauses
    ):  # what waits was read already, and is counted when nothing moves
        return None
    return wire.bytes_received + wire.bytes_sent - wire.heartbeat_octets


def _with_sum(counters: Values, at: int) -> Values:
    """Counters that end in those of deliveries, of which the first four are summed up behind them (`deliver_get`)."""
    return (*counters, sum(counters[at : at + DELIVERED]))


def _node(node: RunningNode, ready: int, unacked: int) -> Values:
    figures, stats = process.figures(node.config.data_dir), inspect.store_stats(node)
    metrics = node.metrics
    written = int(stats.get("written", 0))
    return (
        ready + unacked, ready, unacked,
        figures.resident_bytes, figures.disk_free_bytes, figures.open_fds, figures.open_sockets, figures.threads,
        figures.gc_runs, figures.context_switches, figures.read_ops, figures.read_bytes, figures.write_ops,
        figures.write_bytes, int(stats.get("file_syncs", 0)), int(stats.get("file_opens", 0)), written,
        *of_churn(metrics), *_with_sum(of_node(metrics), len(FINE)), written,
    )  # fmt: skip
