"""What a running node is asked for by the caller's side, by name: the node may be in a thread, or another process.

Arguments and answers are therefore plain: numbers, texts, octets, and tuples, lists and dictionaries of these. Called
on the node's loop. Raises: BrokerError, whose text is all that comes back. Owns no state.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from burrowmq.broker import inspect
from burrowmq.broker.definitions import restore as definitions
from burrowmq.broker.node.advance import advance as pass_time
from burrowmq.broker.node.advance import settle
from burrowmq.broker.queue.browse import Seen, browse
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.vhost.recorder import Recorder
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.embedded import snapshots
from burrowmq.embedded.errors import BrokerError
from burrowmq.embedded.hosted_node import EVERYTHING, HostedNode
from burrowmq.embedded.settings import Recorded
from burrowmq.protocol.codec import Message, split_address
from burrowmq.protocol.properties import Properties, body, decode
from burrowmq.storage import real_time as time

Row = dict[str, Any]
MESSAGES_MAX = 10_000
"""So many messages of a queue are shown at most."""
SNAPSHOT_MAX = 100_000
"""A virtual host with a queue that has more is refused a snapshot."""
BROWSE_S = 10.0
_POLL_S = 0.001


async def advance(node: HostedNode, delta_ms: int) -> int:
    """Move the clock, and do what becomes due; what time it is then."""
    await pass_time(node.running, node.timeline, delta_ms)
    return node.timeline.now_ms


# -- virtual hosts --------------------------------------------------------------------------------------------------


async def add_vhost(node: HostedNode, name: str) -> None:
    """Make a virtual host in which the broker's user may do everything, and record what is published there."""
    running = node.running
    if name in running.vhosts:
        raise BrokerError(f"there is a virtual host {name!r} already")
    if not name or len(name.encode()) > 255:
        raise BrokerError(f"{name!r} is no name for a virtual host")
    definitions.create_vhost(
        name,
        running.vhosts,
        running.make_new_vhost,
        running.engine.definitions,
        running.vhost_made,
    )
    running.auth.set_permission(name, node.user, EVERYTHING)
    node.record(running, name)
    running.scheduler.touch()


async def delete_vhost(node: HostedNode, name: str) -> None:
    """Delete a virtual host with all that is in it, its connections too; harmless when it is not there."""
    running = node.running
    vhost = running.vhosts.get(name)
    if vhost is None:
        return
    await drop_connections(node, name)
    definitions.delete_vhost(vhost, running.vhosts, running.auth, running.engine.definitions)
    running.engine.delete_vhost(name)
    running.scheduler.touch()
    node.refusals.forget(name)


def _vhost(node: HostedNode, name: str) -> Vhost:
    vhost = node.running.vhosts.get(name)
    if vhost is None:
        raise BrokerError(f"there is no virtual host {name!r}")
    return vhost


def _queue(node: HostedNode, vhost: str, name: str) -> Queue:
    queue = _vhost(node, vhost).queues.get(name)
    if not isinstance(queue, Queue):
        raise BrokerError(f"there is no queue {name!r} in virtual host {vhost!r}")
    return queue


# -- looking --------------------------------------------------------------------------------------------------------


async def messages(node: HostedNode, vhost: str, queue_name: str) -> list[Row]:
    """What a queue has, in its order: ready messages, and those that consumers have and did not ack."""
    found = await _Look(node, _queue(node, vhost, queue_name), MESSAGES_MAX).found()
    return [
        row(seen.message, redelivered=seen.redelivered, unacked=is_unacked)
        for seen, is_unacked in found[:MESSAGES_MAX]
    ]


class _Look:
    """What a queue had at one moment, that of the construction: consumers may go on meanwhile."""

    def __init__(self, node: HostedNode, queue: Queue, limit: int) -> None:
        self._name = queue.name
        self._unacked = snapshots.unacked(node.running, queue)
        self._ready: asyncio.Future[list[Seen]] = asyncio.get_running_loop().create_future()
        if queue.ready_count:
            browse(queue, limit, self._on_ready)
        else:
            self._on_ready([])

    def _on_ready(self, seen: list[Seen]) -> None:
        if not self._ready.done():
            self._ready.set_result(seen)

    async def found(self) -> list[tuple[Seen, bool]]:
        """Each message once, in the order of delivery, and whether a consumer had it.

        Raises: BrokerError, when the queue's disk does not give them.
        """
        try:
            ready = await asyncio.wait_for(self._ready, BROWSE_S)
        except TimeoutError as error:
            raise BrokerError(f"the messages of queue {self._name!r} cannot be read") from error
        by_place = {(-each.level, each.seq): (each, False) for each in ready}
        by_place |= {(-each.level, each.seq): (each, True) for each in self._unacked}
        return [by_place[place] for place in sorted(by_place)]


def row(message: Message, *, redelivered: bool = False, unacked: bool = False) -> Row:
    """A message in words that a test uses."""
    exchange, routing_key = split_address(message.address)
    properties = decode(message.raw)
    return {
        "body": body(message.raw),
        "exchange": exchange.decode("utf-8", "surrogateescape"),
        "routing_key": routing_key.decode("utf-8", "surrogateescape"),
        "properties": _set(properties),
        "headers": dict(properties.headers or {}),
        "redelivered": redelivered or unacked,
        "unacked": unacked,
    }


def _set(properties: Properties) -> Row:
    """The properties that are set, but for the headers."""
    names = (name for name in Properties.__slots__ if name != "headers")
    return {name: value for name in names if (value := getattr(properties, name)) is not None}


async def wait_for(
    node: HostedNode, vhost: str, queue_name: str, count: int, timeout_s: float
) -> int:
    """Wait until a queue has exactly so many messages, unacked ones included; how many it has in the end."""
    until = time.monotonic() + timeout_s
    while True:
        queue = _vhost(node, vhost).queues.get(queue_name)
        found = -1 if queue is None else queue.ready_count + queue.unacked_count
        if found == count or time.monotonic() > until:
            return found
        await asyncio.sleep(_POLL_S)


async def published(node: HostedNode, vhost: str, exchange: str) -> list[Row]:
    """What clients have published to an exchange since the virtual host was made."""
    owner = _vhost(node, vhost)
    if exchange not in owner.exchanges:
        raise BrokerError(f"there is no exchange {exchange!r} in virtual host {vhost!r}")
    recorder = owner.tracer
    if not isinstance(recorder, Recorder):
        raise BrokerError(f"nobody records what is published in virtual host {vhost!r}")
    return [row(each) for each in recorder.of(exchange.encode("utf-8", "surrogateescape"))]


async def recorded(node: HostedNode) -> Recorded:
    """What is recorded of the virtual hosts of which something is, for the broker's next run."""
    return {
        name: [snapshots.plain(each) for each in vhost.tracer.all()]
        for name, vhost in node.running.vhosts.items()
        if isinstance(vhost.tracer, Recorder)
    }


# -- as it was ------------------------------------------------------------------------------------------------------


async def snapshot(node: HostedNode, vhost: str) -> snapshots.Snapshot:
    """What is in a virtual host now."""
    await settle(node.running)
    owner, now_ms = _vhost(node, vhost), node.running.scheduler.deadline_ms()
    queues = list(snapshots.lasting(owner))
    for queue in queues:
        count = queue.ready_count + queue.unacked_count
        if count > SNAPSHOT_MAX:
            raise BrokerError(
                f"queue {queue.name!r} has {count} messages: a snapshot keeps {SNAPSHOT_MAX} of one"
            )
    # All of it as it is now: what is read later was noted now.
    looks = {queue.name: _Look(node, queue, SNAPSHOT_MAX) for queue in queues}
    taken = snapshots.take(owner, queues)
    for name, look in looks.items():
        taken.messages[name] = [snapshots.kept(each, now_ms) for each, _ in await look.found()]
    return taken


async def restore(node: HostedNode, vhost: str, taken: snapshots.Snapshot) -> None:
    """Have in a virtual host what was there then, and nothing else; its connections end.

    Raises: TypeError, before anything is taken away, for what is no snapshot.
    """
    if not isinstance(taken, snapshots.Snapshot):
        raise TypeError(f"restore takes what snapshot() gave, not {type(taken).__name__}")
    await drop_connections(node, vhost)
    owner = _vhost(node, vhost)
    snapshots.empty(owner)
    await settle(node.running)
    snapshots.put_back(owner, taken, node.running.scheduler.deadline_ms())
    node.running.scheduler.touch()
    await settle(node.running)


# -- faults ---------------------------------------------------------------------------------------------------------


async def drop_connections(node: HostedNode, vhost: str) -> int:
    """Break the connections of a virtual host as a network does; how many there were."""
    sessions = inspect.each_session(node.running, vhost)
    for session in sessions:
        if session.wire is not None:
            session.wire.abort()
    until = time.monotonic() + BROWSE_S
    while any(session in node.running.sessions for session in sessions):
        if time.monotonic() > until:
            raise BrokerError("connections do not end")
        await asyncio.sleep(0)
    return len(sessions)


async def block(node: HostedNode, is_on: bool) -> None:
    """Block who publishes, in all virtual hosts, as when memory is short; or no more."""
    node.running.alarms.update("asked", is_on, "asked for by a test")


async def nack_next(node: HostedNode, vhost: str, count: int) -> None:
    """Refuse the next publishes with basic.nack."""
    _vhost(node, vhost)
    if type(count) is not int or count < 0:
        raise BrokerError(f"{count!r} publishes cannot be refused: give a number from 0 on")
    node.refusals.next(node.running, vhost, count)


async def slow_disk(node: HostedNode, delay_ms: float) -> None:
    """Have each sync take so much longer."""
    node.faults.slow(delay_ms)


async def fail_disk(node: HostedNode, error: int) -> None:
    """Have each write fail with this errno; 0: no more."""
    node.faults.fail(error)


async def heal(node: HostedNode) -> None:
    """End every fault."""
    node.faults.clear()
    if not node.has_failed:
        await block(node, False)
        for name in node.running.vhosts:
            node.refusals.forget(name)


Command = Callable[..., Coroutine[Any, Any, object]]
COMMANDS: dict[str, Command] = {
    each.__name__: each
    for each in (
        add_vhost,
        advance,
        block,
        delete_vhost,
        drop_connections,
        fail_disk,
        heal,
        messages,
        nack_next,
        published,
        recorded,
        restore,
        slow_disk,
        snapshot,
        wait_for,
    )
}
