"""Bindings that other front-ends have to classic queues of theirs, in the exchanges of this one.

A front-end tells its bindings with its queues (`broker.replicated.homes`). Each is put into the exchange of that name
here, if there is one, and leads to what stands for the queue in a route (`broker.replicated.forwarding.Elsewhere`). So
a publish through any exchange reaches queues at any front-end, an exchange is in use as long as anybody's queue is
bound to it, and an auto-delete exchange goes with the last binding of all. None is listed or stored here.

State owned: which exchanges the bindings come from. Invariant: an exchange has exactly those that the front-end with
the queue has told of it, unless a queue here has its name: that comes first.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, TypeAlias

from burrowmq.broker.definitions.restore import edge_of
from burrowmq.broker.exchange.binding import arguments_key
from burrowmq.records import NamedTuple

if TYPE_CHECKING:
    from burrowmq.broker.exchange.binding import Edge
    from burrowmq.broker.replicated.forwarding import Elsewhere, Takes
    from burrowmq.broker.vhost.share import Topology
    from burrowmq.broker.words.resource import Row

Place: TypeAlias = tuple[str, str]
"""A virtual host, and a queue or exchange of it."""
Key: TypeAlias = tuple[str, bytes, bytes]
"""Of a binding to a known queue: exchange, routing key, arguments."""


class Peer:
    """Another front-end, as far as it has said."""

    def __init__(self, who: str, heard_ms: float) -> None:
        self.who = who
        self.node_name = ""
        self.heard_ms = heard_ms
        self.number = 0  # of the last that has come
        self.has_all = False
        self.places: dict[Place, str] = {}
        """Its queues and reply consumers, with their kind."""
        self.edges: dict[Place, dict[Key, Edge]] = {}
        """What leads to its queues."""
        self.stale_places: set[Place] = set()
        """While it tells all: what has not been told again yet. The same of what leads there:"""
        self.stale_edges: set[tuple[Place, Key]] = set()

    def begins(self, number: int) -> None:
        """The message of that number begins to tell all that it has; until that is told what it had is good."""
        self.has_all, self.number = True, number - 1
        self.stale_places = set(self.places)
        self.stale_edges = {(place, key) for place, keys in self.edges.items() for key in keys}

    def has_told_all(self) -> None:
        """Nothing is stale."""
        self.stale_places.clear()
        self.stale_edges.clear()


class Home(NamedTuple):
    """Where a queue that is not here lives."""

    stub: Elsewhere
    """What stands for it in routes."""
    peer: Peer
    kind: str


def read(row: Row) -> tuple[Place, Key, Edge]:
    """A binding as it was told. Raises: KeyError, TypeError, ValueError for what is none."""
    edge = edge_of(row)
    if edge.kind != "queue" or not edge.source or not isinstance(edge.place, int):
        raise ValueError("no binding to a queue")
    key = edge.source, edge.routing_key, arguments_key(edge.arguments)
    return (str(row["vhost"]), edge.destination), key, edge


class RemoteBindings:
    """Those that one front-end knows."""

    def __init__(self, node: Takes, homes: Mapping[Place, Home]) -> None:
        self._node = node
        self._homes = homes
        self._from: dict[Place, dict[Place, int]] = {}
        """By exchange: the queues that it leads to, with how many have been told."""

    # -- what is told -------------------------------------------------------------------------------------------------

    def bound(self, peer: Peer, place: Place, key: Key, edge: Edge) -> None:
        """It has one more, to a queue that it has told of."""
        peer.stale_edges.discard((place, key))
        if place not in peer.places or key in (edges := peer.edges.setdefault(place, {})):
            return
        edges[key] = edge
        queues = self._from.setdefault((place[0], edge.source), {})
        queues[place] = queues.get(place, 0) + 1
        home = self._homes[place]
        if home.peer is peer:
            self._lead(home, [edge])

    def unbound(self, peer: Peer, place: Place, key: Key, *, is_gone: bool) -> None:
        """It has one less, or was taken to have it."""
        edge = peer.edges.get(place, {}).pop(key, None)
        if edge is None:
            return
        if self._homes[place].peer is peer:
            self._lead_no_more(place, [edge], is_gone=is_gone)
        self._count_down(place, edge)

    def forget(self, peer: Peer, place: Place, *, is_gone: bool) -> None:
        """Its queue is gone, or only unknown from now on, and what leads there with it."""
        edges = peer.edges.pop(place, {}).values()
        if self._homes[place].peer is peer:
            self._lead_no_more(place, edges, is_gone=is_gone)
        for edge in edges:
            self._count_down(place, edge)

    def _count_down(self, place: Place, edge: Edge) -> None:
        source = place[0], edge.source
        queues = self._from[source]
        queues[place] -= 1
        if not queues[place]:
            del queues[place]
        if not queues:
            del self._from[source]

    # -- what is here -------------------------------------------------------------------------------------------------

    def lead_from(self, vhost: Topology, exchange: str) -> None:
        """An exchange has come. O(what leads from there to queues elsewhere)."""
        for place in self._from.get((vhost.name, exchange), ()):
            home = self._homes[place]
            edges = home.peer.edges.get(place, {}).values()
            self._lead_in(vhost, home, [edge for edge in edges if edge.source == exchange])

    def lead_to(self, place: Place) -> None:
        """Somebody has this queue, and nobody here."""
        home = self._homes[place]
        self._lead(home, home.peer.edges.get(place, {}).values())

    def lead_to_no_more(self, place: Place) -> None:
        """It is somebody else's, or a queue here has its name."""
        home = self._homes[place]
        edges = home.peer.edges.get(place, {}).values()
        self._lead_no_more(place, edges, is_gone=False)

    def _lead(self, home: Home, edges: Collection[Edge]) -> None:
        vhost = self._node.vhosts.get(home.stub.vhost_name)
        if vhost is not None:
            self._lead_in(vhost, home, edges)

    @staticmethod
    def _lead_in(vhost: Topology, home: Home, edges: Collection[Edge]) -> None:
        if home.stub.name not in vhost.queues:
            for edge in edges:
                vhost.graph.add_remote(edge, home.stub)

    def _lead_no_more(self, place: Place, edges: Collection[Edge], *, is_gone: bool) -> None:
        vhost = self._node.vhosts.get(place[0])
        if vhost is not None:
            for edge in edges:
                vhost.graph.remove_remote(edge, is_gone=is_gone)
