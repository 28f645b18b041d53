"""A classic queue: what arrives, what is ready, who gets it, what is settled.

A queue is an actor in the sense that only its own synchronous methods change it; it is not a task. Runs of messages
arrive by `publish`; consumers with credit take their share at once, the rest goes to the backlog (one per priority
level). `pump`, called at the end of a loop turn when something changed, serves consumers from the backlog; channels
settle what they were given by `settle` and `requeue`.

State owned: the levels, the consumers, the counts that list_queues shows, the expiry and lease timers. Never knows
exchanges, bindings or sockets: dead letters leave through `QueueContext.republish`, deliveries through
`serve.consumer.ConsumerChannel`. Cost per run is O(1) unless a feature that looks at each message is in use (priority,
TTL, byte limits); `_is_plain` says in one test that none is.

Longer than most modules because it is one object's whole surface: `order.backlog` keeps the order, `serve.dispatch`
says whose turn it is; limits, expiry, getters, rate, the lease and idle buffers have modules of their own; the counts
stay with what changes them.

Sources: rabbit_amqqueue_process, rabbit_variable_queue; the classic queue guide of RabbitMQ.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

from burrowmq.broker.queue import idle
from burrowmq.broker.queue.context import QueueContext
from burrowmq.broker.queue.lease import Lease
from burrowmq.broker.queue.order.backlog import Backlog
from burrowmq.broker.queue.outcome import ACCEPTED, PENDING, Rejected
from burrowmq.broker.queue.rate import RAM_LIMIT, ConsumptionRate
from burrowmq.broker.queue.rules import expiry, limits
from burrowmq.broker.queue.rules.settings import Settings
from burrowmq.broker.queue.run import DURABLE, TRANSIENT, DeliveryRun, Kind, Returned
from burrowmq.broker.queue.serve import dispatch, getters
from burrowmq.broker.queue.serve.consumer import HANDOVER_S, Consumer, Consumers
from burrowmq.broker.queue.serve.getters import Getter
from burrowmq.broker.report.metrics import QueueMetrics
from burrowmq.broker.turn.clock import Timer
from burrowmq.protocol.codec import Message, body_bytes
from burrowmq.protocol.constants import PERSISTENT, PROP_EXPIRATION
from burrowmq.protocol.table import FieldTable
from burrowmq.storage.loop.queue_log import QueueLog

START_BATCH = 16_384
"""Messages loaded at start and when a queue leaves lazy mode (RabbitMQ's lazy queue guide)."""
START_BATCH_BYTES = 64 << 20
"""Body bytes in a start batch at most."""
LOAD_BYTES = 1 << 20
RAM_BYTES = 16 << 20
"""Body bytes in RAM above which what is published to a bounded queue goes to disk, and what comes back to it too."""
NO_LIMIT = 1 << 62


class Queue:
    """One classic queue. Built by `broker.node.vhost_factory`."""

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
        self.context = context
        self.durable = durable and exclusive_owner is None
        self.auto_delete = auto_delete
        self.exclusive_owner = exclusive_owner
        self.arguments: FieldTable = arguments or {}
        self.settings = settings
        self.metrics = QueueMetrics()
        self.consumers = Consumers(is_single_active=settings.single_active_consumer)
        self.exclusive_consumer: Consumer | None = None
        self.levels = [self._make_level(level) for level in range((settings.max_priority or 0) + 1)]
        self.backlog = self.levels[0]
        self.unacked_count = 0
        self.unacked_bytes = 0
        self.persistent_count = 0
        self.persistent_bytes = 0
        self.unacked_persistent_count = 0
        self.unacked_persistent_bytes = 0
        self.is_dirty = False
        self.is_deleted = False
        self.is_paging = False
        self.rate = ConsumptionRate(context.scheduler)
        self.taken_before = 0
        self.getters: deque[Getter] = deque()
        self._after_pump: list[Callable[[], None]] = []
        self._lease = Lease(context.scheduler, lambda: context.on_unused(self))
        self.idle_timer: Timer | None = None
        self.expiry_timer: Timer | None = None
        self.expiry_due_ms = 0
        self.apply_settings(settings)

    def _make_level(self, level: int) -> Backlog:
        return Backlog(lambda: self._open_log(level), self._on_loaded, is_durable=self.durable)

    def _open_log(self, level: int) -> QueueLog:
        context = self.context
        return context.engine.open_queue(
            context.vhost_name,
            self.name,
            durable=self.durable,
            version=self.settings.version,
            level=level,
        )

    # -- counts -------------------------------------------------------------------------------------------------

    @property
    def ready_count(self) -> int:
        """Messages ready for delivery, expired ones behind the head included."""
        if len(self.levels) == 1:
            backlog = self.backlog
            requeued = backlog.requeued
            in_ram = len(backlog.ram.messages) + len(requeued.heap)
            return in_ram + requeued.parked.count + backlog.disk.count
        return sum(level.count for level in self.levels)

    @property
    def ready_bytes(self) -> int:
        """Body bytes of the ready messages."""
        return sum(level.bytes for level in self.levels)

    @property
    def ram_ready_count(self) -> int:
        """Ready messages whose body is in RAM."""
        return sum(level.ram_count + len(level.disk.start_batch_rest) for level in self.levels)

    @property
    def ram_ready_bytes(self) -> int:
        """Body bytes of them."""
        return sum(level.ram_bytes + level.disk.start_batch_rest.bytes for level in self.levels)

    @property
    def consumer_count(self) -> int:
        """Registered consumers, blocked ones included."""
        return len(self.consumers)

    @property
    def memory_bytes(self) -> int:
        """Bytes that this queue's own objects take, buffers of the store included; bodies in RAM at 90 B overhead."""
        total = 2600 + 700 * len(self.levels) + 600 * len(self.consumers)
        total += self.ram_ready_bytes + 200 * self.ram_ready_count
        for level in self.levels:
            if level.has_log:
                total += level.log.memory_bytes
        return total

    # -- arrivals -----------------------------------------------------------------------------------------------

    def publish(self, messages: list[Message], flags: int, size: int) -> int | Rejected:
        """Take responsibility for a run: ACCEPTED, PENDING (a confirm waits for the disk) or Rejected."""
        if self.is_deleted:
            # A transaction may have been routed here before. Opening storage now would be a second one of that name.
            return ACCEPTED
        self.metrics.publish += len(messages)
        if self._is_plain and not flags & PROP_EXPIRATION:
            return self.enqueue(self.backlog, messages, flags, size, None)
        return limits.publish(self, messages, flags, size)

    def enqueue(
        self,
        backlog: Backlog,
        messages: list[Message],
        flags: int,
        size: int,
        expiries: list[int] | None,
    ) -> int:
        """Hand a run to waiting consumers, store the rest at the tail of `backlog`."""
        is_durable = self.durable and bool(flags & PERSISTENT)
        outcome = PENDING if is_durable else ACCEPTED
        if self.consumers.open_count and not self.ready_count:
            taken, was_logged = dispatch.offer(self, backlog, messages, size, is_durable, expiries)
            if taken == len(messages):
                return outcome if was_logged else ACCEPTED
            if taken:
                messages = messages[taken:]
                size = body_bytes(messages)
                expiries = expiries[taken:] if expiries is not None else None
        kind = DURABLE if is_durable else TRANSIENT
        if backlog.disk.count or self.is_lazy or self.is_paging:
            room = 0
        elif self.is_cached:
            room = NO_LIMIT
        elif backlog.ram_bytes > RAM_BYTES:
            room = 0
        else:
            room = self.rate.ram_limit() - backlog.ram_count
        backlog.append(messages, size, kind, expiries, room)
        if is_durable:
            self.stored(len(messages), size)
        if expiries is not None:
            expiry.arm(self)
        if self.consumers.open_count:
            self.context.scheduler.queue_dirty(self)
        return outcome

    def stored(self, count: int, size: int) -> None:
        """Account for persistent messages that were staged in the store."""
        self.persistent_count += count
        self.persistent_bytes += size
        self.metrics.disk_writes += count

    # -- departures ---------------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Serve consumers from the backlog until nothing is ready, nobody can take, or the turn's budget is used."""
        if self.getters:
            getters.serve(self)
        if self.consumers.leavers:
            self.consumers.hand_over()
        dispatch.serve(self)
        if self._after_pump:
            waiting, self._after_pump = self._after_pump, []
            for callback in waiting:
                callback()

    def owes(self, consumer: Consumer) -> bool:
        """Whether messages that this consumer can take are on their way from disk."""
        return consumer.credit() > 0 and any(level.is_loading for level in self.levels)

    def after_pump(self, callback: Callable[[], None]) -> None:
        """Run `callback` when consumers were served next."""
        self._after_pump.append(callback)

    def head_level(self) -> Backlog | None:
        """The level that is served next, after what has expired at its head is gone; None when nothing is ready."""
        if self.has_expiries:
            expiry.drop_expired(self)
        if len(self.levels) == 1:
            return self.backlog if self.backlog.count else None
        for level in reversed(self.levels):
            if level.count:
                return level
        return None

    @property
    def has_expiries(self) -> bool:
        """Whether any ready message may expire."""
        return any(level.has_expiries for level in self.levels)

    def load(self, backlog: Backlog, wanted: int) -> bool:
        """Bring the head of `backlog` into RAM; True when it takes another turn."""
        backlog.load(min(max(wanted, self.rate.ram_limit()), RAM_LIMIT), LOAD_BYTES, wanted)
        return backlog.is_loading

    def _on_loaded(self) -> None:
        if self.is_deleted:
            return
        if not self._is_plain:
            limits.enforce(self)
        self.context.scheduler.queue_dirty(self)
        idle.watch(self)

    def get(self, on_run: Getter) -> None:
        """Take one message from the head for basic.get; (None, None) when there is none. May answer in a later turn."""
        self.getters.append(on_run)
        getters.serve(self)

    def delivered(self, consumer_no_ack: bool, backlog: Backlog, run: DeliveryRun) -> None:
        """Account for a run that was sent (to a consumer or by basic.get) with or without an ack to come."""
        count = len(run.messages)
        if run.redelivered:
            self.metrics.redeliver += count
            self.context.metrics.messages_redelivered += count
        if not consumer_no_ack:
            self.unacked_count += count
            self.unacked_bytes += run.size
            if run.kind == DURABLE:
                self.unacked_persistent_count += count
                self.unacked_persistent_bytes += run.size
        else:
            self.gone(backlog, run.seqs, run.messages, run.kind, run.size)

    def gone(
        self, backlog: Backlog, seqs: Sequence[int], messages: list[Message], kind: Kind, size: int
    ) -> None:
        """These messages left the queue for good."""
        if kind == DURABLE:
            self.persistent_count -= len(messages)
            self.persistent_bytes -= size
        backlog.forget(seqs, messages, kind)

    def dropped(self, count: int, size: int, kind: Kind) -> None:
        """Messages that were dropped from the disk range unread."""
        if kind == DURABLE:
            self.persistent_count -= count
            self.persistent_bytes -= size

    def settle(
        self, backlog: Backlog, seqs: Sequence[int], messages: list[Message], kind: Kind, size: int
    ) -> None:
        """Acked (or rejected without requeue, after dead-lettering): forget them."""
        if self.is_deleted:
            return
        count = len(messages)
        self._leave_unacked(count, size, kind)
        self.gone(backlog, seqs, messages, kind, size)
        if self.consumers.leavers:
            self.context.scheduler.queue_dirty(self)

    def _leave_unacked(self, count: int, size: int, kind: Kind) -> None:
        self.unacked_count -= count
        self.unacked_bytes -= size
        if kind == DURABLE:
            self.unacked_persistent_count -= count
            self.unacked_persistent_bytes -= size

    def requeue(self, backlog: Backlog, entries: list[Returned]) -> None:
        """Put unacked messages back into their places; length limits and expiry are applied, then consumers served."""
        if self.is_deleted or not entries:
            return
        for _, message, _, kind, _ in entries:
            self._leave_unacked(1, message.size, kind)
        backlog.give_back(entries)
        self._bound_returned(backlog)
        if not self._is_plain:
            limits.enforce(self)
        if self.has_expiries:
            expiry.drop_expired(self)
        self.context.scheduler.queue_dirty(self)

    def _bound_returned(self, backlog: Backlog) -> None:
        """What a greedy consumer gives back does not all stay in RAM; cached mode waits until memory is short."""
        if self.is_cached and not (self.is_lazy or self.is_paging):
            return
        if len(backlog.requeued.heap) > 2 * RAM_LIMIT or backlog.requeued.bytes > RAM_BYTES:
            backlog.park(RAM_LIMIT, LOAD_BYTES)
        idle.watch(self)

    def put_back(self, backlog: Backlog, run: DeliveryRun) -> None:
        """Return a run that was taken but could not be sent: nobody has seen it."""
        expiries = run.expiries or [0] * len(run.messages)
        backlog.give_back(
            [
                (seq, message, due, run.kind, run.redelivered)
                for seq, message, due in zip(run.seqs, run.messages, expiries, strict=True)
            ]
        )

    def dead_letter(self, reason: str, messages: Sequence[Message]) -> None:
        """Send copies to the dead-letter exchange if one is set; the caller removes the originals."""
        # RabbitMQ: the queue itself does this, so that what is rejected after its end just goes.
        if self.is_deleted:
            return
        if self.settings.dead_letter_exchange is None:
            self.context.metrics.count_dropped(reason, len(messages))
        else:
            self.context.republish(self, reason, messages)

    def purge(self) -> int:
        """Drop every ready message; returns how many."""
        self.persistent_count = self.unacked_persistent_count
        self.persistent_bytes = self.unacked_persistent_bytes
        count = sum(level.purge() for level in self.levels)
        self.wake_waiting()
        return count

    # -- consumers ----------------------------------------------------------------------------------------------

    def add_consumer(self, consumer: Consumer) -> None:
        """Register; deliveries start at the end of this turn, after consume-ok."""
        self.consumers.add(consumer)
        if consumer.exclusive:
            self.exclusive_consumer = consumer
        self._lease.stop()
        self.context.scheduler.queue_dirty(self)

    def remove_consumer(self, consumer: Consumer) -> None:
        """Forget a consumer; the last one to leave ends an auto-delete queue and starts the lease."""
        if not self.consumers.remove(consumer):
            return
        if self.exclusive_consumer is consumer:
            self.exclusive_consumer = None
        if self.is_deleted:
            return
        if consumer in self.consumers.leavers:
            self.context.scheduler.call_later(HANDOVER_S, lambda: self._stop_waiting(consumer))
        if not len(self.consumers):
            idle.watch(self)
            if self.auto_delete:
                self.context.on_unused(self)
                return
            self.touch()
        else:
            self.context.scheduler.queue_dirty(self)

    def _stop_waiting(self, leaver: Consumer) -> None:
        self.consumers.stop_waiting(leaver)
        if self.consumers.open_count and not self.is_deleted:
            self.context.scheduler.queue_dirty(self)

    def consumer_unblocked(self, consumer: Consumer) -> None:
        """Credit came back (ack, qos, the connection drained)."""
        if self.consumers.unblock(consumer) and self.ready_count:
            self.context.scheduler.queue_dirty(self)

    # -- settings, lease, idleness, life ------------------------------------------------------------------------

    def apply_settings(self, settings: Settings) -> None:
        """Put new effective settings (arguments and policy) in force, on what is queued too where RabbitMQ does."""
        self.settings = settings
        self.is_lazy = settings.mode == "lazy"
        self.is_cached = self.context.options.default_mode == "cached"
        self._is_plain = not (
            settings.max_length is not None
            or settings.max_length_bytes is not None
            or settings.message_ttl_ms is not None
            or settings.max_priority is not None
        )
        for level in self.levels:
            level.disk.keeps_sizes = (
                settings.max_length is not None or settings.max_length_bytes is not None
            )
        if settings.overflow == "drop-head":
            limits.enforce(self)
        self.touch()

    def touch(self) -> None:
        """Restart the x-expires lease (declare, basic.get, the last consumer left)."""
        self._lease.renew(None if len(self.consumers) else self.settings.expires_ms)

    def page_out(self) -> int:
        """Move ready messages to disk (memory pressure, or default to lazy); returns how many moved."""
        count = sum(level.page_out() for level in self.levels)
        self.wake_waiting()
        return count

    def wake_waiting(self) -> None:
        """The read that a basic.get or a cancel waits for may have become void: look again at the end of the turn."""
        if self.getters or self._after_pump:
            self.context.scheduler.queue_dirty(self)

    def open_storage(self) -> None:
        """Open the storage before there is a message: an old queue of this name goes in the same batch."""
        self.backlog.open()

    def recover(self, is_known: Callable[[str, int], bool]) -> None:
        """Take over what the store found for this durable queue; a start batch is loaded by `load_start_batch`.

        `is_known` tells whether the store has something of a level of this queue.
        """
        for index, level in enumerate(self.levels):
            if not is_known(self.name, index):
                continue
            level.recover(self._open_log(index))
            found = level.log.recovered
            if found is not None:
                self.persistent_count += found.persistent_count
                self.persistent_bytes += found.persistent_bytes
        if self.has_expiries:
            expiry.arm(self)

    def load_start_batch(self, max_bytes: int) -> None:
        """Load up to 16,384 messages, as every queue does when its node starts."""
        for level in reversed(self.levels):
            level.load_start_batch(START_BATCH, max_bytes)

    def look_for_expiry(self) -> None:
        """After a start: learn whether the first message expires, if that is not known; it stays on disk if not."""
        for level in reversed(self.levels):
            if level.count:
                if level.is_head_on_disk and not level.has_expiries:
                    level.peek()
                return

    def convert(self, version: int) -> None:
        """Have the store's files converted to this version of them; the queue goes on meanwhile."""
        for level in self.levels:
            if level.has_log:
                level.log.set_version(version)
        self.context.scheduler.queue_dirty(self)

    def note_delivered(self) -> None:
        """Before a clean stop: tell the store below which id everything was handed out once."""
        for level in self.levels:
            if level.has_log:
                level.log.set_delivered(level.fresh_seq)

    def delete(self) -> None:
        """End: cancel consumers, forget content. Not dead-lettered. The vhost has removed the bindings."""
        self.is_deleted = True
        self.context.metrics.queues_deleted += 1
        self._lease.stop()
        for timer in (self.idle_timer, self.expiry_timer):
            if timer is not None:
                timer.cancel()
        for consumer in list(self.consumers):
            self.consumers.remove(consumer)
            consumer.channel.consumer_cancelled(consumer)
        while self.getters:
            self.getters.popleft()(None, None)
        waiting, self._after_pump = self._after_pump, []
        for callback in waiting:
            callback()
        for level in self.levels:
            if level.has_log:
                level.log.delete()
            level.let_go()
