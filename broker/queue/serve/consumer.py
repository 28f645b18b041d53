"""One consumer of one queue, and the order in which a queue serves its consumers.

`Consumers` keeps, per priority, the consumers that can take messages in the order in which they will be served; a
consumer that cannot (prefetch used up, connection congested) is set aside and comes back at the tail when it can,
so that serving never walks over blocked consumers. The channel is seen through `ConsumerChannel` alone.

Where one consumer follows another (single active, exclusive), the order of the messages is what it is used for. A
client that closes its channel cancels its consumers first and waits for the answers, so that what they hold comes back
a round trip later. Until then the one that left is a leaver, and who follows it on another channel is registered but
not served. RabbitMQ 3.13 does not wait, and the order is lost.

Source: rabbit_queue_consumers; consumer priorities and single active consumer guides of RabbitMQ.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from burrowmq.broker.queue.origin import Origin
from burrowmq.broker.queue.run import DeliveryRun
from burrowmq.broker.queue.serve.capacity import Capacity
from burrowmq.broker.turn.clock import Clock
from burrowmq.protocol.table import FieldTable

UNLIMITED = 1 << 30
HANDOVER_S = 5.0
"""How long a successor waits when the channel of the one before it stays open and keeps what it holds."""
SEARCHED_MAX: Final = 32
"""A longer ring is not searched for each one that leaves, which would be squared when all do: see `_leave`."""


class ConsumerChannel(Protocol):
    """What a queue needs of the channel that its consumer lives on."""

    def credit(self) -> int:
        """How many more messages the channel's shared limit and its connection's buffer allow now."""
        ...

    def deliver(self, consumer: Consumer, origin: Origin, run: DeliveryRun) -> None:
        """Send `run` with the next delivery tags and, unless no_ack, remember it as unacked, with its origin."""
        ...

    def set_aside(self, consumer: Consumer) -> None:
        """The consumer is blocked; should it wait for a shared limit, this is when it began to."""
        ...

    def consumer_cancelled(self, consumer: Consumer) -> None:
        """The queue went away: forget the consumer and tell the client if it wants to know."""
        ...


class Consumer:
    """Identity, limits and unacked count of one basic.consume.

    It knows its channel, not its queue. The channel counts what is unacked; whether the consumer is active or blocked
    is the business of `Consumers`.
    """

    __slots__ = (
        "arguments",
        "channel",
        "exclusive",
        "is_active",
        "is_blocked",
        "no_ack",
        "prefetch_count",
        "priority",
        "tag",
        "tag_bytes",
        "unacked_count",
        "unacked_max",
        "waiting_place",
    )

    def __init__(
        self,
        tag: str,
        channel: ConsumerChannel,
        *,
        no_ack: bool = False,
        exclusive: bool = False,
        prefetch_count: int = 0,
        priority: int = 0,
        arguments: FieldTable | None = None,
    ) -> None:
        self.tag = tag
        self.tag_bytes = tag.encode()
        self.channel = channel
        self.no_ack = no_ack
        self.exclusive = exclusive
        self.prefetch_count = self.unacked_max = prefetch_count
        self.priority = priority
        self.arguments: FieldTable = arguments or {}
        self.unacked_count = 0
        self.is_active = True
        self.is_blocked = False
        self.waiting_place = 0
        """Among the blocked consumers of a channel with a shared limit; 0 once it has been served."""

    def credit(self) -> int:
        """How many messages may be sent to this consumer now; 0 or less when it is blocked."""
        room = self.channel.credit()
        if self.no_ack or not self.unacked_max:
            return room
        own = self.unacked_max - self.unacked_count
        if own < room:
            return own
        return room


# What a queue without consumers has, and all of them share; with the first one it gets its own.
_NONE: Final[dict[Consumer, None]] = {}
_NOBODY: Final[list[Consumer]] = []
_NO_PRIORITIES: Final[list[int]] = []
_NO_RINGS: Final[dict[int, deque[Consumer]]] = {}
_NO_STRAYS: Final[set[Consumer]] = set()


class Consumers:
    """All consumers of one queue in serving order."""

    __slots__ = (
        "_all", "_capacity", "_clock", "_is_single_active", "_priorities", "_rings", "_strays", "_successors",
        "active", "are_waiting", "exclusive", "leavers", "open_count", "sole",
    )  # fmt: skip

    def __init__(self, clock: Clock | None = None, *, is_single_active: bool = False) -> None:
        """`clock` measures `capacity`; only the one that nobody joins has none."""
        self._clock = clock
        self._capacity: Capacity | None = None
        self._rings = _NO_RINGS
        self._priorities = _NO_PRIORITIES
        """Highest first; empty as long as there are strays, so that `ready` finds nobody and sweeps them out."""
        self._strays = _NO_STRAYS
        """Who has left and is still in a ring; nobody as long as no more than one may be served."""
        self._all = _NONE
        """In the order of coming."""
        self._is_single_active = is_single_active
        self._successors = _NOBODY
        self.leavers: list[Consumer] = []
        """One list as long as the queue lives: who settles looks into it."""
        self.active: Consumer | None = None
        self.exclusive: Consumer | None = None
        self.are_waiting = False
        """Whether none is served, since the queue is blocked: not with dead letters that arrive, either."""
        self.open_count = 0
        self.sole: Consumer | None = None
        """The only consumer that may be served, when there is just one (it may still lack credit)."""

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[Consumer]:
        return iter(self._all)

    @property
    def capacity(self) -> float:
        """In which share of the last second they could take messages at once; 0 where there are none."""
        return self._capacity.share() if self._all and self._capacity is not None else 0.0

    @property
    def rings(self) -> list[tuple[int, Sequence[Consumer]]]:
        """(priority, who of it may be served, in serving order), for who looks on."""
        self._sweep()
        return list(self._rings.items())

    @property
    def successors(self) -> Sequence[Consumer]:
        """Who is registered and waits until those who left hold nothing any more."""
        return self._successors

    def add(self, consumer: Consumer) -> None:
        """Register at the tail of its priority."""
        if self._all is _NONE:
            self._begin()
        if consumer in self._strays:
            self._sweep()
        self._all[consumer] = None
        if consumer.exclusive:
            self.exclusive = consumer
        if self._is_single_active:
            if self.active is None:
                self._activate(consumer)
            else:
                consumer.is_active = False
            return
        self._admit(consumer)

    def _begin(self) -> None:
        """The first one comes."""
        self._all, self._successors = {}, []
        self._rings = {}
        if self._clock is not None:
            self._capacity = Capacity(self._clock)

    def give_way(self, to: Consumer) -> None:
        """Of those that are registered, or will be, only this one is served from now on: as a single active one."""
        for consumer in self._all:
            consumer.is_active = consumer.is_blocked = False
        self._rings, self._priorities, self._strays, self._successors = {}, [], _NO_STRAYS, []
        self.open_count, self.sole = 0, None
        self.leavers.clear()
        self._is_single_active = True
        self._activate(to)

    def remove(self, consumer: Consumer) -> bool:
        """Forget it; False when it is not registered. With a single active consumer the next one is elected."""
        if consumer not in self._all:
            return False
        del self._all[consumer]
        if consumer is self.exclusive:
            self.exclusive = None
        is_in_ring = not consumer.is_blocked and (
            consumer is self.active or not self._is_single_active
        )
        if consumer in self._successors:
            self._successors.remove(consumer)
            is_in_ring = False
        if consumer.unacked_count and (consumer.exclusive or consumer is self.active):
            self.leavers.append(consumer)
        self._leave(consumer, is_in_ring=is_in_ring)
        # A cancelled consumer may still settle deliveries; it must not come back into the ring by that.
        consumer.is_blocked = False
        if self._is_single_active and consumer is self.active:
            self.active = None
            self._elect()
        return True

    def remove_all(self) -> list[Consumer]:
        """Forget all of them at once, who they were: nobody follows, where `remove` elects for each active one."""
        found = list(self._all)
        for consumer in found:
            consumer.is_blocked = False
        self._all, self._successors = _NONE, _NOBODY
        self._rings, self._priorities, self._strays = _NO_RINGS, _NO_PRIORITIES, _NO_STRAYS
        self.active = self.exclusive = self.sole = None
        self.open_count = 0
        self.leavers.clear()
        return found

    def hand_over(self) -> None:
        """Let those be served whose predecessors hold nothing any more."""
        self.leavers[:] = [leaver for leaver in self.leavers if leaver.unacked_count]
        successors, self._successors = self._successors, []
        for consumer in successors:
            self._admit(consumer)

    def stop_waiting(self, leaver: Consumer) -> None:
        """Do not wait any longer for what it holds."""
        if leaver in self.leavers:
            self.leavers.remove(leaver)
            self.hand_over()

    def ready(self, limit: int) -> list[Consumer]:
        """Up to `limit` consumers that can take a message now, in serving order, all of the highest such priority."""
        for priority in self._priorities:
            ring = self._rings[priority]
            ready: list[Consumer] = []
            while len(ready) < limit and len(ready) < len(ring):
                consumer = ring[len(ready)]
                if consumer.credit() > 0:
                    ready.append(consumer)
                else:
                    del ring[len(ready)]
                    consumer.is_blocked = True
                    consumer.channel.set_aside(consumer)
                    self._one_less()
            if ready:
                return ready
        if self._strays:
            self._sweep()
            return self.ready(limit)
        if self._capacity is not None:
            self._capacity.block()
        return []

    def block_sole(self) -> None:
        """The only one that might be served has used up its credit, and more is ready: as `ready` would find."""
        sole = self.sole
        assert sole is not None, "the caller has served it"
        self._rings[sole.priority].clear()
        sole.is_blocked = True
        sole.channel.set_aside(sole)
        self.open_count = 0
        self.sole = None
        if self._capacity is not None:
            self._capacity.block()

    def served(self, priority: int, count: int) -> None:
        """Rotate: `count` messages went one by one to the head of the ring, each served consumer to the tail."""
        ring = self._rings.get(priority)
        if ring is not None and len(ring) > 1:
            ring.rotate(-(count % len(ring)))

    def unblock(self, consumer: Consumer) -> bool:
        """Let a blocked consumer be served again; False when it was not blocked or may not be served."""
        if not consumer.is_blocked or (self._is_single_active and consumer is not self.active):
            return False
        if consumer.credit() <= 0:
            return False
        self._enter(consumer)
        return True

    def _admit(self, consumer: Consumer) -> None:
        # On a leaver's own channel one client has both in hand, and a close takes both back into their places.
        if any(leaver.channel is not consumer.channel for leaver in self.leavers):
            self._successors.append(consumer)
        else:
            self._enter(consumer)

    def _enter(self, consumer: Consumer) -> None:
        if self._capacity is not None:
            self._capacity.unblock()
        consumer.is_blocked = False
        ring = self._rings.get(consumer.priority)
        if ring is None:
            ring = self._rings[consumer.priority] = deque()
            self._order()
        ring.append(consumer)
        self.open_count += 1
        self.sole = consumer if self.open_count == 1 else None

    def _leave(self, consumer: Consumer, *, is_in_ring: bool) -> None:
        """Out of its ring, which goes with the last one: a client may choose another priority each time it comes.

        In a long ring it stays, as a stray, until `ready` asks, or until strays are more than those who can be served.
        """
        ring = self._rings.get(consumer.priority)
        if ring is None:
            return
        if is_in_ring and len(ring) <= SEARCHED_MAX:
            ring.remove(consumer)
        elif is_in_ring:
            self._strays = self._strays or set()
            self._strays.add(consumer)
            self._priorities = _NO_PRIORITIES
        if is_in_ring:
            self._one_less()
        if not ring:
            del self._rings[consumer.priority]
            self._order()
        if len(self._strays) > self.open_count:
            self._sweep()

    def _sweep(self) -> None:
        """Take the strays out of their rings, all with one pass."""
        strays, self._strays = self._strays, _NO_STRAYS
        if not strays:
            return
        for priority in {stray.priority for stray in strays}:
            ring = deque(consumer for consumer in self._rings[priority] if consumer not in strays)
            if ring:
                self._rings[priority] = ring
            else:
                del self._rings[priority]
        self._order()

    def _order(self) -> None:
        self._priorities = _NO_PRIORITIES if self._strays else sorted(self._rings, reverse=True)

    def _one_less(self) -> None:
        self.open_count -= 1
        self.sole = None
        if self.open_count == 1:
            self._sweep()
            self.sole = next(ring[0] for ring in self._rings.values() if ring)

    def _activate(self, consumer: Consumer) -> None:
        self.active = consumer
        consumer.is_active = True
        self._admit(consumer)

    def _elect(self) -> None:
        if not self._all:
            return
        best = max(consumer.priority for consumer in self._all)
        candidates = [consumer for consumer in self._all if consumer.priority == best]
        self._activate(next((c for c in candidates if c.credit() > 0), candidates[0]))
