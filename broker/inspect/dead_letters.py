"""Where a queue's dead letters go, and from there: the path drawn on the page of a queue.

Owns no state; nothing is sent. With a routing key of the queue's own, and no headers exchange on the way, the vhost's
routing says exactly which queues get them; else each message's own keys or headers decide, and what is told are the
queues that could. Called by the UI's page of a queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from burrowmq.broker.exchange.base import Exchange
from burrowmq.broker.inspect.values import Row
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.vhost import router
from burrowmq.broker.vhost.vhost import Vhost

HOPS_MAX = 10
TARGETS_MAX = 20
BINDINGS_MAX = 1000
"""Bindings looked at for one hop where any of them could be taken."""


def dead_letter_path(vhost: Vhost, queue: QueuePort) -> list[Row]:
    """One row a queue that dead-letters, the given one first, then those that its dead letters reach."""
    hops: list[Row] = []
    seen, waiting = {queue.name}, [queue]
    while waiting and len(hops) < HOPS_MAX:
        current = waiting.pop(0)
        if current.settings.dead_letter_exchange is None:
            continue
        targets, is_certain = _targets(vhost, current)
        hops.append(
            {
                "queue": current.name,
                "exchange": current.settings.dead_letter_exchange,
                "exists": current.settings.dead_letter_exchange in vhost.exchanges,
                "routing_key": _key(current),
                "is_certain": is_certain,
                "targets": [
                    {"name": name, "is_back": name in seen} for name in targets[:TARGETS_MAX]
                ],
                "is_cut": len(targets) > TARGETS_MAX,
            }
        )
        for name in targets[:TARGETS_MAX]:
            if name not in seen and name in vhost.queues:
                seen.add(name)
                waiting.append(vhost.queues[name])
    return hops


def _key(queue: QueuePort) -> str | None:
    key = queue.settings.dead_letter_routing_key
    return None if key is None else key.decode("utf-8", "replace")


def _targets(vhost: Vhost, queue: QueuePort) -> tuple[list[str], bool]:
    """Queues by name, and whether it is sure that they get the dead letters."""
    exchange = vhost.exchanges.get(queue.settings.dead_letter_exchange or "")
    if exchange is None:
        return [], True
    key = queue.settings.dead_letter_routing_key
    if key is not None and router.reach(vhost, exchange).is_by_key:
        found = vhost.route(exchange, (key,), None)
        return [target.name for target in found if not router.is_no_queue(target)], True
    possible = dict.fromkeys(islice(_possible(vhost, exchange), BINDINGS_MAX))
    return list(possible), False


def _possible(vhost: Vhost, exchange: Exchange) -> Iterator[str]:
    """The queues that an exchange leads to, whatever key and headers are; of the default one none is told."""
    seen, waiting = {exchange.name}, [exchange]
    while waiting:
        current = waiting.pop(0)
        following = []
        if current.alternate is not None:
            following.append(vhost.exchanges.get(current.alternate))
        for binding in current.bindings:
            if binding.destination_kind == "queue":
                yield binding.destination.name
            else:
                following.append(vhost.exchanges.get(binding.destination.name))
        for each in following:
            if each is not None and each.name not in seen:
                seen.add(each.name)
                waiting.append(each)
