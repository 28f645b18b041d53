"""A classic queue: what arrives, what is ready, who gets it, what is settled.

A queue is an actor in the sense that only its own synchronous methods change it; it is not a task. It is made of
parts, each of which owns the state of one feature and can be read by itself; the queue builds them, gives each what it
needs of the others, and says what happens in which order. What it does itself is what concerns several parts at once:
consumers that come and leave, messages that come back or were loaded, new settings, a start and the end.

  order    levels: what is ready, in its order, in RAM and on disk
  serve    serving, getters, consumers, rate: who gets it; origins: by which it comes back
  rules    limits, expiry, dead letters, lease, transition: what arguments and policies ask for
  memory   paging, idle: how much of it is in RAM
  counts, arrivals, losses

Those that not all queues need are made when something asks for them: what serves with the first consumer or basic.get,
limits, the lease and a transition where settings ask for one. On a node with very many queues that is half of what one
weighs.

Runs of messages arrive by `publish`; `pump`, called at the end of a loop turn when something changed, serves consumers
from the levels; channels give back what they were given by its `Origin`. Never knows exchanges, bindings or sockets:
dead letters leave through `QueueContext.republish`, deliveries through `serve.consumer.ConsumerChannel`. Cost per run
is O(1) unless a feature that looks at each message is in use (priority, TTL, byte limits); `_is_plain` says in one test
that none is.

Sources: rabbit_amqqueue_process, rabbit_variable_queue; the classic queue guide of RabbitMQ.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Final

from burrowmq.broker.queue.arrivals import Arrivals
from burrowmq.broker.queue.context import QueueContext
from burrowmq.broker.queue.counts import Counts
from burrowmq.broker.queue.here import Here
from burrowmq.broker.queue.losses import Losses
from burrowmq.broker.queue.memory.idle import Idle
from burrowmq.broker.queue.memory.paging import Paging
from burrowmq.broker.queue.memory.weight import weight_of
from burrowmq.broker.queue.order.backlog import Backlog
from burrowmq.broker.queue.order.levels import Levels
from burrowmq.broker.queue.origin import Origin
from burrowmq.broker.queue.outcome import ACCEPTED, Rejected
from burrowmq.broker.queue.rules.dead_letter import DeadLetters
from burrowmq.broker.queue.rules.drops import Drops
from burrowmq.broker.queue.rules.expiry import Expiry
from burrowmq.broker.queue.rules.lease import Lease
from burrowmq.broker.queue.rules.limits import Limits
from burrowmq.broker.queue.rules.settings import Settings
from burrowmq.broker.queue.rules.transition import Transition
from burrowmq.broker.queue.serve.consumer import HANDOVER_S, Consumer, Consumers
from burrowmq.broker.queue.serve.getters import Getter, Getters
from burrowmq.broker.queue.serve.rate import ConsumptionRate
from burrowmq.broker.queue.serve.serving import Serving
from burrowmq.broker.report.metrics import QueueMetrics
from burrowmq.broker.words.resource import not_found
from burrowmq.protocol.codec import Message
from burrowmq.protocol.constants import PROP_EXPIRATION
from burrowmq.protocol.errors import AmqpError
from burrowmq.protocol.table import FieldTable
from burrowmq.storage.loop.queue_log import QueueLog

WITHHELD_S = 10.0
"""For so long a basic.get waits for a message that the disk refuses to read."""

# What most queues were declared with; nobody changes a queue's arguments.
NO_ARGUMENTS: FieldTable = {}
# What is to be done after the next pump, mostly; never changed.
_NOTHING_LATER: Final[list[Callable[[], None]]] = []


class Queue(Here):
    """One classic queue. Built by `broker.node.vhost_factory`, mostly as one that is dormant (`dormant`)."""

    is_dormant = False
    """Whether it has no parts yet, because nothing has happened to it."""
    is_asleep = False
    """Whether it has no parts yet: it is dormant, or nothing has happened to what a start has found."""

    __slots__ = (
        "_after_pump", "_changed", "_context", "_found", "_getters", "_idle", "_is_plain", "_lease",
        "_limits", "_losses", "_origins", "_scheduler", "_serving", "_transition", "arguments", "arrivals",
        "auto_delete", "consumers", "counts", "dead_letters", "durable", "exclusive_owner", "expiry",
        "is_blocked", "is_deleted", "is_dirty", "is_unreadable", "levels", "made_ms", "name", "paging",
        "rate", "settings",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        settings: Settings,
        context: QueueContext,
        *,
        durable: bool = False,
        auto_delete: bool = False,
        exclusive_owner: object | None = None,
        arguments: FieldTable | None = None,
    ) -> None:
        self.name = name
        self.durable = durable and exclusive_owner is None
        self.auto_delete = auto_delete
        self.exclusive_owner = exclusive_owner
        self.arguments: FieldTable = arguments or NO_ARGUMENTS
        self.settings = settings
        self.is_dirty = False
        self.is_deleted = False
        self.made_ms = context.scheduler.wall_ms()
        self._context = context
        self._found: QueueLog | None = None  # while it sleeps on what a start has found
        self._begin()

    def _begin(self) -> None:
        """Build the parts, and put the settings in force."""
        context, settings = self._context, self.settings
        self._scheduler = context.scheduler
        # A partial weighs more.
        self._changed: Callable[[], None] = MethodType(context.queue_dirty, self)
        self._after_pump = _NOTHING_LATER
        self._origins: list[Origin] | None = None
        self._serving: Serving | None = None
        self._limits: Limits | None = None
        self._getters: Getters | None = None
        self._lease: Lease | None = None
        self._losses: Losses | None = None
        self._transition: Transition | None = None
        self.is_unreadable = self.is_blocked = False
        self._make_parts(settings, context)
        self._apply(settings)

    def _make_parts(self, settings: Settings, context: QueueContext) -> None:
        """Build the parts that each queue needs; each is given those before it that it looks at."""
        scheduler = context.scheduler
        self.levels = Levels(
            Backlog(
                functools.partial(self._open_log, level),
                self,
                is_durable=self.durable,
                level=level,
            )
            for level in range((settings.max_priority or 0) + 1)
        )
        self.counts = Counts(context.metrics)
        self.consumers = Consumers(scheduler, is_single_active=settings.single_active_consumer)
        self.rate = ConsumptionRate(scheduler)
        share = context.options.ram_share
        cached = context.options.default_mode == "cached"
        self.paging = Paging(self.levels, self.consumers, self.rate, self, share, is_cached=cached)
        self._idle: Idle | None = None
        self.dead_letters = DeadLetters(self.name, scheduler, context.metrics, context.republish)
        self.expiry = Expiry(scheduler, self.levels, self.consumers, self.counts, self.dead_letters)
        self.arrivals = Arrivals(
            self.levels,
            self.consumers,
            self.counts,
            self.paging,
            self.expiry,
            is_durable=self.durable,
            changed=self._changed,
        )

    def _open_log(self, level: int) -> QueueLog:
        context = self._context
        return context.engine.open_queue(
            context.vhost_name,
            self.name,
            durable=self.durable,
            version=self.settings.version,
            level=level,
        )

    # -- parts that are made when something asks for them -------------------------------------------------------

    @property
    def origins(self) -> list[Origin]:
        """By which deliveries come back, by level."""
        if self._origins is None:
            self._origins = [
                Origin(
                    self.name,
                    level,
                    self.counts,
                    self.consumers.leavers,
                    dead_letter=self.dead_letters.send,
                    on_return=functools.partial(self._on_return, level),
                    changed=self._changed,
                )
                for level in self.levels
            ]
            self._allow(self.settings.consumer_timeout_ms)
        return self._origins

    @property
    def serving(self) -> Serving:
        """How messages are shared among consumers."""
        if self._serving is None:
            self._serving = Serving(
                self.origins,
                self.consumers,
                self.counts,
                self.rate,
                self._scheduler,
                head=self.expiry.live_head,
                load=self.paging.load,
                changed=self._changed,
            )
        return self._serving

    @property
    def limits(self) -> Limits:
        """Through which everything goes that is not plain."""
        if self._limits is None:
            changed, serving, arrivals = self._changed, self.serving, self.arrivals
            drops = Drops(self.dead_letters, self.rate, is_durable=self.durable, changed=changed)
            accept, taken_next = arrivals.accept, serving.taken_next
            self._limits = Limits(
                self.levels, self.counts, self.expiry, drops, accept=accept, taken_next=taken_next
            )
            self._limits.apply(self.settings)
        return self._limits

    @property
    def idle(self) -> Idle:
        """What leaves RAM when nobody takes messages."""
        if self._idle is None:
            self._idle = Idle(self._scheduler, self.consumers, self.counts, self.paging)
        return self._idle

    @property
    def drops(self) -> Drops | None:
        """What was dropped and is on its way out; None while nothing can have been."""
        return self._limits.drops if self._limits is not None else None

    @property
    def getters(self) -> Getters:
        """Who waits for basic.get."""
        if self._getters is None:
            expiry = self.expiry
            self._getters = Getters(
                self.levels,
                self.origins,
                self.rate,
                head=expiry.live_head,
                load=self.paging.load,
                drop_expired=expiry.drop_expired,
            )
        return self._getters

    @property
    def getter_count(self) -> int:
        """How many wait for basic.get."""
        return len(self._getters.waiting) if self._getters is not None else 0

    # -- figures ------------------------------------------------------------------------------------------------

    @property
    def metrics(self) -> QueueMetrics:
        """What has happened so far."""
        return self.counts.metrics

    @property
    def consumer_count(self) -> int:
        """Registered consumers, blocked ones included."""
        return len(self.consumers)

    @property
    def memory_bytes(self) -> int:
        """Bytes that this queue's own objects take, buffers of the store included, and what is ready in RAM."""
        return weight_of(self.levels, len(self.consumers), is_serving=self._serving is not None)

    # -- arrivals -----------------------------------------------------------------------------------------------

    def publish(self, messages: list[Message], flags: int, size: int) -> int | Rejected:
        """Take responsibility for a run: ACCEPTED, PENDING (a confirm waits for the disk) or Rejected."""
        if self.is_deleted:
            # A transaction may have been routed here before. Opening storage now would be a second one of that name.
            return ACCEPTED
        self.counts.published(len(messages))
        if self._is_plain and not flags & PROP_EXPIRATION:
            return self.arrivals.enqueue(self.levels[0], messages, flags, size, None)
        if self.is_blocked:
            return Rejected(list(range(len(messages))), is_pending=False)
        is_full = self.is_dirty and not self.limits.has_room(len(messages), size)
        if is_full and not self.serve_waiting():
            return ACCEPTED
        return self.limits.publish(messages, flags, size)

    def take(self, messages: list[Message], flags: int, size: int) -> int | Rejected:
        """As `publish`, for what has left another queue: a blocked queue takes it, and the store keeps it in memory."""
        if not self.is_blocked or self.is_deleted:
            return self.publish(messages, flags, size)
        self.counts.published(len(messages))
        return self.limits.publish(messages, flags, size)

    # -- departures ---------------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Serve who waits, at the end of a turn in which something changed."""
        self.serve_waiting()
        if self._after_pump:
            self._run_after_pump()

    def serve_waiting(self) -> bool:
        """Serve basic.get and consumers until nothing is ready, nobody can take, or the turn's budget is used.

        Also before a command that looks at what is ready, while the queue is dirty: who waits has by now what the
        commands before this one let it have. Gives whether the queue is still there: whose basic.get is answered goes
        on, and may delete it.
        """
        getters = self._getters
        if getters is not None and getters.waiting and not (self.is_blocked and self.ready_count):
            getters.serve()
        if self.consumers.leavers:
            self.consumers.hand_over()
        if not self.is_blocked:
            if self._serving is not None:
                self._serving.serve()
            else:
                self.expiry.live_head()  # what has expired goes, and the timer is set for the next
        return not self.is_deleted

    def ask(self, then: Callable[[AmqpError | None], None]) -> None:
        """How many messages there are is known, once who waits has what the commands before let it have."""
        is_there = not self.is_dirty or self.serve_waiting()
        then(None if is_there else not_found("queue", self.name, self.vhost_name))

    def after_pump(self, callback: Callable[[], None]) -> None:
        """Run `callback` once, at the end of the next pump or of the queue."""
        if self._after_pump:
            self._after_pump.append(callback)
        else:
            self._after_pump = [callback]

    def _run_after_pump(self) -> None:
        waiting, self._after_pump = self._after_pump, _NOTHING_LATER
        for callback in waiting:
            callback()

    def wake_waiting(self) -> None:
        """The read that a basic.get or a cancel waits for may have become void: look again at the end of the turn."""
        if self.getter_count or self._after_pump:
            self._changed()

    def get(self, getter: Getter) -> None:
        """Take one message from the head for basic.get, maybe in a later turn; (None, None) when there is none.

        Or when the disk does not give it for `WITHHELD_S`: then `is_withheld` says so.
        """
        if self.is_dirty and not self.getter_count:
            self.serve_waiting()
        if not self.getters.add(getter):
            self._changed()
        elif not (self.is_blocked and self.ready_count):
            self.getters.serve()
        if self.is_unreadable or self.is_blocked:
            self._bound_getters()

    @property
    def is_withheld(self) -> bool:
        """Whether there are messages that nobody gets, since the disk does not serve the queue."""
        if self.is_asleep or self.is_deleted:
            return False
        return (self.is_unreadable or self.is_blocked) and self.ready_count > 0

    def _bound_getters(self) -> None:
        if self.getter_count:
            self._scheduler.call_later(WITHHELD_S, self._give_up)

    def _give_up(self) -> None:
        if self.is_deleted or self._getters is None:
            return
        if self.is_unreadable or self.is_blocked:
            self._getters.end()

    def serve_last(self, consumer: Consumer) -> bool:
        """Give a consumer that is about to leave what it can take; whether some of that is on its way from disk."""
        if self.is_dirty:
            self.serve_waiting()
        is_served = not self.is_unreadable and not self.is_blocked
        return consumer.credit() > 0 and self.levels.is_loading and is_served

    def note_unreadable(self, *, is_unreadable: bool) -> None:
        """The disk refuses the queue's reads, or answers again: nobody's cancel waits for what may not come."""
        self.is_unreadable = is_unreadable
        self.wake_waiting()
        if is_unreadable:
            self._bound_getters()

    def note_blocked(self, *, is_blocked: bool) -> None:
        """The disk refuses what the queue has, or takes it again: it takes nothing and serves nobody meanwhile."""
        self.is_blocked = self.consumers.are_waiting = is_blocked
        self._find_out_if_plain()
        self._changed()
        if is_blocked:
            self._bound_getters()

    def on_loaded(self) -> None:
        """What was missing is in RAM: there is something to serve (`backlog.BacklogOwner`)."""
        if self.is_deleted:
            return
        self.drop_excess()
        self._changed()
        if not self.levels.are_start_batches:
            self.idle.watch()

    def on_lost(self, count: int, size: int) -> None:
        """The store does not have so many messages of the backlog, or some that it has have left it (`losses`)."""
        if self.durable:
            if self._losses is None:
                self._losses = Losses(self.levels, self.counts, self.after_pump, self._changed)
            self._losses.note(count, size)

    def _on_return(self, backlog: Backlog) -> None:
        """Unacked messages have come back into their places."""
        if not self.paging.keeps_all:
            self.paging.bound_returned(backlog)
            self.idle.watch()
        self.drop_excess()
        if self.levels.has_expiries:
            self.expiry.drop_expired()
        self._changed()

    def purge(self) -> int:
        """Drop every ready message; returns how many."""
        self.counts.purged()
        count = self.levels.purge()
        self.wake_waiting()
        return count

    # -- consumers ----------------------------------------------------------------------------------------------

    def add_consumer(self, consumer: Consumer) -> None:
        """Register; deliveries start at the end of this turn, after consume-ok."""
        self.arrivals.serving = self.serving
        self.consumers.add(consumer)
        if self._lease is not None:
            self._lease.stop()
        self._changed()

    def remove_consumer(self, consumer: Consumer) -> None:
        """Forget a consumer; the last one to leave ends an auto-delete queue and starts the lease."""
        if not self.consumers.remove(consumer) or self.is_deleted:
            return
        if consumer in self.consumers.leavers:
            self._scheduler.call_later(HANDOVER_S, lambda: self._stop_waiting(consumer))
        if len(self.consumers):
            self._changed()
            return
        self.idle.watch()
        if self.auto_delete:
            self._context.on_unused(self.name)
        else:
            self.touch()

    def _stop_waiting(self, leaver: Consumer) -> None:
        self.consumers.stop_waiting(leaver)
        if self.consumers.open_count and not self.is_deleted:
            self._changed()

    def consumer_unblocked(self, consumer: Consumer) -> None:
        """Credit came back (ack, qos, the connection drained)."""
        if self.consumers.unblock(consumer) and self.levels.ready_count:
            self._changed()

    # -- settings -----------------------------------------------------------------------------------------------

    def change_settings(self, settings: Settings) -> None:
        """Put new effective settings (arguments and policy) in force, on what is queued too where RabbitMQ does."""
        transition = self._transition or Transition(
            self.levels,
            self.paging,
            are_exceeded=self._are_limits_exceeded,
            apply=self._apply,
            after_pump=self.after_pump,
            changed=self._changed,
        )
        transition.put_in_force(self.settings, settings)
        self._transition = transition if transition.is_waiting else None

    def _apply(self, settings: Settings) -> None:
        self.settings = settings
        self.paging.set_mode(is_lazy=settings.mode == "lazy")
        self.expiry.set_ttl(settings.message_ttl_ms)
        self.dead_letters.apply(settings)
        self._allow(settings.consumer_timeout_ms)
        if self._limits is not None or settings.is_limited:
            self.limits.apply(settings)
        self._find_out_if_plain()
        self.drop_excess()
        self.touch()

    def _allow(self, consumer_timeout_ms: int | None) -> None:
        for origin in self._origins or ():
            origin.allow(consumer_timeout_ms)

    def drop_excess(self) -> None:
        """Drop what is more than the settings allow; what has to be read for that goes when it is."""
        if self._limits is not None:
            self._limits.enforce()

    def _are_limits_exceeded(self) -> bool:
        return self._limits is not None and self._limits.are_exceeded

    def _find_out_if_plain(self) -> None:
        settings = self.settings
        self._is_plain = not (
            self.is_blocked
            or settings.is_limited
            or settings.message_ttl_ms is not None
            or settings.max_priority is not None
        )

    def touch(self) -> None:
        """Restart the x-expires lease (declare, basic.get, the last consumer left)."""
        if self.is_deleted:  # its timer would end another queue of this name
            return
        expires_ms = None if len(self.consumers) else self.settings.expires_ms
        if self._lease is None and expires_ms is not None:
            self._lease = Lease(self._scheduler, self._context.on_unused, self.name)
        if self._lease is not None:
            self._lease.renew(expires_ms)

    def memory_is_short(self, *, is_short: bool) -> None:
        """Said by the node about once a second while it is, and once when it is no longer."""
        self.paging.memory_is_short(is_short=is_short)

    # -- start and end ------------------------------------------------------------------------------------------

    def open_storage(self) -> None:
        """Open the storage before there is a message: an old queue of this name goes in the same commit."""
        self.levels[0].open()

    def recover(self, is_known: Callable[[str, int], bool]) -> None:
        """Take over what the store found for this durable queue; a start batch is loaded by `load_start_batch`.

        `is_known` tells whether the store has something of a level of this queue.
        """
        found = self.levels.recover(lambda level: is_known(self.name, level), self._open_log)
        self.counts.recovered(*found)
        if self.levels.has_expiries:
            self.expiry.arm()

    def load_start_batch(self, max_bytes: int) -> None:
        """Load up to 16,384 messages, as every queue does when its node starts."""
        self.paging.load_start_batch(max_bytes)

    def look_for_expiry(self) -> None:
        """After a start: learn whether the first message expires, if that is not known; it stays on disk if not."""
        self.levels.peek()

    def note_delivered(self) -> None:
        """Before a clean stop: tell the store below which id everything was handed out once."""
        self.levels.note_delivered()

    def delete(self) -> None:
        """End: cancel consumers, forget content. Not dead-lettered. The vhost has removed the bindings."""
        self.is_deleted = True
        self._context.metrics.queues_deleted += 1
        if self._idle is not None:
            self._idle.end()
        self.expiry.end()
        self.dead_letters.end()
        if self._lease is not None:
            self._lease.stop()
        if self._transition is not None:
            self._transition.end()
        if self._limits is not None:
            self._limits.end()
        for origin in self._origins or ():
            origin.end()
        for consumer in self.consumers.remove_all():
            consumer.channel.consumer_cancelled(consumer)
        if self._getters is not None:
            self._getters.end()
        self._run_after_pump()
        self.levels.delete()
