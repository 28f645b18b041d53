"""Exchanges and bindings as rows.

Owns no state. Source: rabbit_exchange's and rabbit_binding's info keys (3.13).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import overload
from urllib.parse import quote_plus

from burrowmq.broker.exchange.base import Exchange
from burrowmq.broker.exchange.binding import Binding, DestinationKind
from burrowmq.broker.inspect.queues import each_vhost
from burrowmq.broker.inspect.values import Row, Table, plain
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.vhost.vhost import Vhost


def exchange_row(vhost: Vhost, exchange: Exchange, table: Table = plain) -> Row:
    """One exchange; the default one has the empty name."""
    stats: Row = {}
    if exchange.publish_in or exchange.publish_out:
        stats = {"publish_in": exchange.publish_in, "publish_out": exchange.publish_out}
    name = str(exchange.name)
    is_built_in = name == "" or name.startswith("amq.")
    return {
        "name": name,
        "vhost": vhost.name,
        "type": str(exchange.type),
        "durable": bool(exchange.durable),
        "auto_delete": bool(exchange.auto_delete),
        "internal": bool(exchange.internal),
        "arguments": table(exchange.arguments or {}),
        "policy": exchange.policy_name,
        "user_who_performed_action": "rmq-internal" if is_built_in else "none",
        "message_stats": stats,
    }


def exchanges(node: RunningNode, vhost: str | None = None, table: Table = plain) -> Iterator[Row]:
    """Every exchange, by vhost and name; a row is made when it is asked for."""
    for owner, exchange in each_exchange(each_vhost(node, vhost)):
        yield exchange_row(owner, exchange, table)


def each_exchange(vhosts: Iterable[Vhost]) -> list[tuple[Vhost, Exchange]]:
    """The exchanges of some vhosts, by name."""
    return [(owner, owner.exchanges[name]) for owner in vhosts for name in sorted(owner.exchanges)]


def properties_key(routing_key: str, arguments: Row) -> str:
    """The opaque last segment of a binding's address: equal bindings have equal keys, different ones different.

    As in RabbitMQ a tilde of the routing key is escaped: alone it stands for the empty one.
    """
    key = quote_plus(routing_key, safe="").replace("~", "%7E")
    if not arguments:
        return key or "~"
    digest = zlib.crc32(repr(sorted(arguments.items())).encode("utf-8", "replace"))
    return f"{key}~{digest:08x}"


def _routing_key(binding: Binding) -> str:
    return binding.routing_key.decode("utf-8", "replace")


def binding_row(vhost: Vhost, source: str, binding: Binding, table: Table = plain) -> Row:
    """One binding."""
    key, arguments = _routing_key(binding), binding.arguments or {}
    return {
        "source": source,
        "vhost": vhost.name,
        "destination": str(binding.destination.name),
        "destination_type": str(binding.destination_kind),
        "routing_key": key,
        "arguments": table(arguments),
        "properties_key": properties_key(key, plain(arguments)),
    }


def implicit_binding_row(vhost: Vhost, queue_name: str, table: Table = plain) -> Row:
    """The default exchange's binding of a queue."""
    return {
        "source": "",
        "vhost": vhost.name,
        "destination": queue_name,
        "destination_type": "queue",
        "routing_key": queue_name,
        "arguments": table({}),
        "properties_key": properties_key(queue_name, {}),
    }


Bound = tuple[Vhost, Binding | str]
"""A binding and its virtual host; the default exchange's implicit one to a queue is the queue's name."""


class Bounds(Sequence[Bound]):
    """Bindings of several exchanges, one after the other and as they are now; none is looked at before it is asked for.

    The default exchange's lead to every queue. What is in a page of a hundred thousand is found without the others.
    """

    def __init__(self, sources: Iterable[tuple[Vhost, str]]) -> None:
        self._parts: list[tuple[Vhost, Sequence[Binding | str]]] = []
        for vhost, name in sources:
            exchange = vhost.exchanges.get(name)
            if not name:
                self._parts.append((vhost, vhost.queue_names.listed()))
            elif exchange is not None and exchange.bindings:
                self._parts.append((vhost, own_bindings(vhost, exchange)))

    def __len__(self) -> int:
        return sum(len(part) for _, part in self._parts)

    def __iter__(self) -> Iterator[Bound]:
        return chain.from_iterable(zip(repeat(vhost), part) for vhost, part in self._parts)

    @overload
    def __getitem__(self, place: int) -> Bound: ...
    @overload
    def __getitem__(self, place: slice) -> list[Bound]: ...
    def __getitem__(self, place: int | slice) -> Bound | list[Bound]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        left = place if place >= 0 else place + len(self)
        for vhost, part in self._parts:
            if left < len(part):
                return vhost, part[left]
            left -= len(part)
        raise IndexError(place)


def own_bindings(vhost: Vhost, exchange: Exchange) -> list[Binding]:
    """Those that this front-end lists: not what leads to classic queues at others."""
    if vhost.homes is None:
        return list(exchange.bindings)
    return [each for each in exchange.bindings if each.is_own]


def each_bound(node: RunningNode, vhost: str | None = None) -> Bounds:
    """Every binding; the default exchange's implicit ones come first, as RabbitMQ lists them."""
    owners = each_vhost(node, vhost)
    return Bounds((owner, name) for owner in owners for name in sorted(owner.exchanges))


def bound_from(vhost: Vhost, source: str) -> Bounds:
    """The bindings of which an exchange is the source."""
    return Bounds([(vhost, source)])


def bound_row(bound: Bound, table: Table = plain) -> Row:
    """One binding of either kind."""
    vhost, each = bound
    if isinstance(each, str):
        return implicit_binding_row(vhost, each, table)
    return binding_row(vhost, each.source.name, each, table)


def bindings(node: RunningNode, vhost: str | None = None, table: Table = plain) -> Iterator[Row]:
    """The rows of `each_bound`."""
    return (bound_row(each, table) for each in each_bound(node, vhost))


def bindings_from(vhost: Vhost, source: str) -> Iterator[Row]:
    """The bindings of which an exchange is the source, in the order they were made."""
    for each in own_bindings(vhost, vhost.exchanges[source]):
        yield binding_row(vhost, source, each)


def bindings_to(vhost: Vhost, kind: DestinationKind, name: str) -> Iterator[Row]:
    """The bindings that lead to a queue or exchange; a queue's implicit one first. O(those)."""
    if kind == "queue":
        yield implicit_binding_row(vhost, name)
    for each in list(vhost.bindings_to(kind, name)):
        yield binding_row(vhost, each.source.name, each)


def find_binding(node: RunningNode, row: Row) -> Binding | None:
    """The binding object that a row of `bindings` was made from; None for an implicit one."""
    owner = node.vhosts.get(row["vhost"])
    if owner is None or row["source"] == "":
        return None
    for binding in owner.bindings_to(row["destination_type"], row["destination"]):
        found = binding_row(owner, binding.source.name, binding)
        if all(found[name] == row[name] for name in ("source", "properties_key")):
            return binding
    return None
