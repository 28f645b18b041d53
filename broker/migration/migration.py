"""One classic queue on its way to be a quorum queue of the same name.

    moving      publishers go on into the old queue; nobody is served but the mover, so that the order stays
    finishing   the old one is empty: in one turn the new one has its name, bindings, publishers and consumers;
                what clients still hold of the old one is acknowledged there, or comes back and is moved as well
    ended       nothing is left: in one commit the old one goes, and the new one is what a start finds

A start that finds the node's note of it begins again with what is left: nothing says how far it was but the messages.

State owned: both queues' bond, until it ends. Called by `broker.migration.migrations`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from burrowmq.broker.channel.channel import Channel
from burrowmq.broker.migration.mover import Mover
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.quorum import quorum_arguments, validate_quorum
from burrowmq.broker.queue.rules.settings import QueueDeclaration, Settings
from burrowmq.broker.queue.serve.consumer import Consumer
from burrowmq.broker.turn.clock import Pumpable, Scheduler
from burrowmq.broker.vhost.mirrored import NO_DLX_OF_REFUSED
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.protocol.errors import PreconditionFailed

LOOK_S: Final = 0.1


def successor_of(queue: Queue, *, is_resumed: bool = False) -> QueueDeclaration:
    """The quorum queue that it would be."""
    return QueueDeclaration(
        name=queue.name,
        durable=queue.durable,
        auto_delete=queue.auto_delete,
        owner=queue.exclusive_owner,
        arguments=quorum_arguments(queue.arguments),
        default_version=2 if is_resumed else None,
    )


def obstacle(vhost: Vhost, queue: QueuePort) -> str:
    """Why it cannot become one, or would behave otherwise; "" when it can."""
    if not isinstance(queue, Queue):
        return f"it is a {queue.kind} queue"
    try:
        validate_quorum(successor_of(queue), vhost.name)
    except PreconditionFailed as refused:
        return refused.text
    if _settings_then(vhost, queue).overflow == "reject-publish-dlx":
        return NO_DLX_OF_REFUSED
    if not queue.is_asleep and queue.consumers.exclusive is not None:
        return "it has an exclusive consumer"
    if not queue.is_asleep and (queue.is_blocked or queue.is_unreadable):
        return "the disk refuses its files"
    return ""


def changes(vhost: Vhost, queue: Queue) -> list[str]:
    """What will be in force otherwise, since of a quorum queue's overflow and expires the policy's word holds."""
    now, then = vhost.settings.of(queue.name, queue.arguments), _settings_then(vhost, queue)
    return [
        f"{key} {before} becomes {after}"
        for key, before, after in (
            ("overflow", now.overflow, then.overflow),
            ("expires", now.expires_ms, then.expires_ms),
        )
        if before != after
    ]


def _settings_then(vhost: Vhost, queue: Queue) -> Settings:
    return vhost.settings.of_successor(queue.name, successor_of(queue).arguments)


class Migration:
    """That of one queue.

    `acked` is to have acks written soon, `is_awaited` says whether somebody may still publish into a queue that has no
    name any more, `settled` is to remember, in the commit that collects, that it is over; `ended` is told that it is.
    """

    def __init__(
        self,
        vhost: Vhost,
        old: Queue,
        new: QueuePort,
        scheduler: Scheduler,
        *,
        acked: Callable[[int], None],
        is_awaited: Callable[[Queue], bool],
        settled: Callable[[], None],
        ended: Callable[[Migration], None],
    ) -> None:
        self.vhost = vhost
        self.old = old
        self.new = new
        self.is_finishing = False
        self._scheduler = scheduler
        self._is_awaited = is_awaited
        self._settled = settled
        self._ended = ended
        self._is_over = False
        self._was_active: Consumer | None = None
        self._mover = Mover(
            old, new, scheduler, acked=acked, moved=self._look, ended=self._on_old_deleted
        )

    def start(self) -> None:
        """Begin to move."""
        self.new.made_ms = self.old.made_ms
        self._was_active = self.old.consumers.active
        self._mover.start()
        self._look()
        self._scheduler.call_later(LOOK_S, self._on_time)

    @property
    def moved_count(self) -> int:
        """Messages that the new queue has got since the node's start."""
        return self._mover.moved_count

    @property
    def left_count(self) -> int:
        """Messages that the old one still has, those that clients hold included."""
        return 0 if self._is_over else self.old.ready_count + self.old.unacked_count

    @property
    def refused_count(self) -> int:
        """Messages that the cluster did not take, and is offered again."""
        return self._mover.refused_count

    def _on_time(self) -> None:
        if not self._is_over:
            self._look()
            if not self.is_finishing:
                self.new.touch()  # nobody can use it yet: that is no reason to expire
            else:
                # What clients acknowledge of the old queue is credit for the new one, which is not told of it.
                self._scheduler.queue_dirty(cast("Pumpable", self.new))
            self._scheduler.touch()
            self._scheduler.call_later(LOOK_S, self._on_time)

    def _look(self) -> None:
        if self._is_over:
            return
        if self._mover.is_busy or self.old.ready_count:
            if self._mover.refused_count and self.new.settings.is_limited and not self.is_finishing:
                # It may be full: only its consumers can make room, and they wait for the old one to be empty.
                self._swap()
            return
        if not self.is_finishing:
            self._swap()
        if self.old.unacked_count or self._is_awaited(self.old):
            return
        # Of dead letters whose copies the disk refuses, the originals are all that is durable: as when one is deleted.
        if not self.vhost.engine.owed_copies(self.vhost.name, self.old.name):
            self._finish()

    def _swap(self) -> None:
        self.is_finishing = True
        old, mover = self.old, self._mover.consumer
        followers = [each for each in old.consumers if each is not mover]
        followers.sort(key=lambda each: each is not self._was_active)
        self.vhost.succeed(old, self.new)
        for consumer in followers:
            old.consumers.remove(consumer)
            consumer.is_active = True
            channel = consumer.channel
            assert isinstance(channel, Channel), "there is one mover"
            channel.follow(consumer, self.new)

    def _finish(self) -> None:
        self._is_over = True
        self._settled()
        self.vhost.settle_succession(self.new, self.old.arguments)
        self._ended(self)

    def _on_old_deleted(self) -> None:
        if self._is_over:
            return  # by ourselves
        self._is_over = True
        if not self.is_finishing:
            self.new.delete()
        self._settled()
        self._ended(self)
