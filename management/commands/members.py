"""Which servers keep quorum queues and streams: one more, or one fewer, as `rabbitmq-queues` and `rabbitmq-streams` do.

Owns no state. Nothing is changed while one of the servers is down: what a majority has is then one failure from being
what nobody has, and the servers' own changes of membership are at their weakest. Source: rabbit_quorum_queue and
rabbit_stream_queue (3.13): add_member, delete_member, grow, shrink_all, status, restart_stream (of which another writer
is what is wanted: there are no processes to start again), whose words for refusals these are.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.queue.placement import LAST_MEMBER, Placement
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.rules.pattern import compile_pattern
from burrowmq.management.answers import quorum

Row = dict[str, Any]
AT_ONCE = 4
"""Queues whose members change: each of them may have all of its messages copied."""
_VERBS = {
    ("quorum", True): "add members to",
    ("quorum", False): "delete members from",
    ("stream", True): "add replicas to",
    ("stream", False): "delete replicas from",
}
_NOUNS = {"classic": "classic queue", "quorum": "quorum queue", "stream": "stream queue"}


class MemberRefused(Exception):
    """The members stay as they are, or are not known to be as asked; `word` is what RabbitMQ's HTTP API says."""

    def __init__(self, text: str, word: str = "") -> None:
        super().__init__(text)
        self.word = word or text


class Strategy(NamedTuple):
    """Which queues grow."""

    name: str
    vhost_pattern: str = ""
    queue_pattern: str = ""


ELECTION_S = 10.0
"""A stream that gets no other writer within this time is left where it is."""
STRATEGIES = ("all", "even")


def find(node: RunningNode, vhost: str, name: str) -> QueuePort | None:
    """A queue of any kind."""
    owner = node.vhosts.get(vhost)
    return None if owner is None else owner.queues.get(name)


async def change(
    node: RunningNode, queue: QueuePort, server: str, *, kind: str, is_kept: bool
) -> None:
    """Have a server keep a queue of this kind, or keep it no longer. Raises: MemberRefused."""
    require_kind(queue, kind, _VERBS[kind, is_kept])
    await require_servers(node, server)
    await _change(queue, server, is_kept=is_kept)


def require_kind(queue: QueuePort, kind: str, what: str) -> None:
    """See that what is to be done is done to a queue of this kind. Raises: MemberRefused."""
    if queue.kind != kind:
        # RabbitMQ: of streams rabbit_quorum_queue says that they are none of its own, not what they are.
        is_stream = queue.kind == "stream"
        word = "not_quorum_queue" if is_stream else f"{queue.kind}_queue_not_supported"
        raise MemberRefused(f"Cannot {what} a {_NOUNS[queue.kind]}", word)


async def _change(queue: QueuePort, server: str, *, is_kept: bool) -> None:
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def on_changed(reason: str) -> None:
        if not told.done():  # who asked may be gone
            told.set_result(reason)

    queue.change_member(server, on_changed, is_kept=is_kept)
    reason = await told
    if reason == LAST_MEMBER:
        is_stream = queue.kind == "stream"
        text = "Cannot delete the last member of a stream" if is_stream else reason
        raise MemberRefused(text, "last_stream_member" if is_stream else "last_node")
    if reason:
        raise MemberRefused(reason)


async def require_servers(node: RunningNode, server: str) -> None:
    """See that a server is one of the cluster's, and that all of those are there. Raises: MemberRefused."""
    servers, found = await asyncio.gather(node.replication.sight(), quorum.standings(node))
    placements = [each.placement for each in found if each.placement is not None]
    down = {each.name or each.address: each.reason for each in servers if each.reason}
    for placement in placements:
        for name in set(placement.members) - set(placement.online):
            down.setdefault(name, "its queues' leaders do not hear it")
    if down:
        told = ", ".join(f"{name} ({reason})" for name, reason in sorted(down.items()))
        raise MemberRefused(f"no member is added or removed while a server is down: {told}")
    names = {each.name for each in servers} | {
        name for placement in placements for name in placement.members
    }
    if server not in names:
        known = ", ".join(sorted(names))
        raise MemberRefused(f"node {server} is none of the servers: {known}", "node_not_running")


async def grow(node: RunningNode, server: str, strategy: Strategy) -> list[Row]:
    """Have a server keep all quorum queues that fit, or those of them with an even number of members.

    Gives what became of each that it has not kept. Raises: MemberRefused, BadPattern.
    """
    vhosts = compile_pattern(strategy.vhost_pattern)
    queues = compile_pattern(strategy.queue_pattern)
    meant = [
        each
        for each in await _quorum_queues(node, server)
        if each.placement is not None
        and vhosts.is_in(each.vhost)
        and queues.is_in(each.name)
        and server not in each.placement.members
        and (strategy.name == "all" or len(each.placement.members) % 2 == 0)
    ]
    return await _change_each(node, meant, server, is_kept=True)


async def shrink(node: RunningNode, server: str) -> list[Row]:
    """Have a server keep no quorum queue any longer; gives what became of each. Raises: MemberRefused."""
    meant = [
        each
        for each in await _quorum_queues(node, server)
        if each.placement is not None and server in each.placement.members
    ]
    return await _change_each(node, meant, server, is_kept=False)


async def _quorum_queues(node: RunningNode, server: str) -> list[quorum.Standing]:
    found = [each for each in await quorum.standings(node) if each.kind == "quorum"]
    if found or await node.replication.sight():
        await require_servers(node, server)
    return found


async def _change_each(
    node: RunningNode, meant: list[quorum.Standing], server: str, *, is_kept: bool
) -> list[Row]:
    turns = asyncio.Semaphore(AT_ONCE)

    async def change_one(each: quorum.Standing, placement: Placement) -> Row | None:
        async with turns:
            queue = find(node, each.vhost, each.name)
            if queue is None:  # deleted since
                return None
            size: int | str = len(placement.members)
            try:
                await _change(queue, server, is_kept=is_kept)
                result, size = "ok", len(placement.members) + (1 if is_kept else -1)
            except MemberRefused as refused:
                result = f"error: {refused}"
            return {"vhost": each.vhost, "name": each.name, "size": size, "result": result}

    rows = await asyncio.gather(
        *(change_one(each, each.placement) for each in meant if each.placement is not None)
    )
    return [row for row in rows if row is not None]


async def status(queue: QueuePort, kind: str) -> list[Row]:
    """Each server that keeps a queue of this kind, and what it is to it, asked now. Raises: MemberRefused."""
    require_kind(queue, kind, f"get {kind} status of")
    placement = await placement_of(queue)
    return [_row(kind, name, placement) for name in placement.members]


async def placement_of(queue: QueuePort) -> Placement:
    """Where a queue is kept, asked now. Raises: MemberRefused."""
    reason = await quorum.ask(queue)
    placement = queue.placement
    if reason or placement is None:
        raise MemberRefused(reason or "nothing is known of it yet")
    return placement


def _row(kind: str, server: str, placement: Placement) -> Row:
    is_leader, is_online = server == placement.leader, server in placement.online
    if kind == "stream":
        role = "writer" if is_leader else "replica"
        return {"role": role, "node": server, "state": "running" if is_online else "down"}
    state = "leader" if is_leader else "follower"
    return {"Node Name": server, "Raft State": state if is_online else "noproc"}


async def restart(queue: QueuePort, preferred: str = "") -> str:
    """Have another server write a stream, the preferred one if it can; gives which does then. Raises: MemberRefused.

    Source: rabbit_stream_queue:restart_stream, to which the preferred node is a wish as well.
    """
    require_kind(queue, "stream", "restart")
    placement = await placement_of(queue)
    if not placement.members:
        raise MemberRefused(f"the only server is no cluster: nobody else can write {queue.name}")
    if preferred and preferred not in placement.members:
        known = ", ".join(placement.members)
        text = f"node {preferred} does not keep {queue.name}; these do: {known}"
        raise MemberRefused(text, "node_not_running")
    others = sorted(set(placement.online) - {placement.leader})
    server = preferred if preferred in placement.online else next(iter(others), placement.leader)
    if server != placement.leader:
        await quorum.have_lead(queue, server, ELECTION_S)
        placement = await placement_of(queue)
    if not placement.leader:
        raise MemberRefused(f"nobody writes {queue.name} now: its servers elect who does")
    return placement.leader
