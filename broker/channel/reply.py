"""Direct reply-to: answers that go straight to the requester's channel, without a queue.

A channel that consumes from `amq.rabbitmq.reply-to` gets a key; a publish through the default exchange whose routing
key is that key is delivered to it at once. `ReplyTargets` is one per vhost: key to target. A target takes runs like a
queue does, stores nothing and never waits.

Source: RabbitMQ's direct reply-to guide; rabbit_channel (deliver_reply).
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Protocol

from burrowmq.broker.turn.clock import Entropy
from burrowmq.protocol.codec import Message, encode_deliver
from burrowmq.protocol.connection.server import ServerConnection

PSEUDO_QUEUE = "amq.rabbitmq.reply-to"
PREFIX = b"amq.rabbitmq.reply-to."


class ReplySession(Protocol):
    """What a target needs of the requester's connection."""

    connection: ServerConnection

    def write(self, data: bytes) -> None:
        """Queue bytes for this turn's write."""
        ...


class ReplyChannel(Protocol):
    """What a target needs of the requester's channel."""

    number: int
    next_tag: int

    @property
    def session(self) -> ReplySession:
        """The connection's session."""
        ...


class ReplyTarget:
    """The reply consumer of one channel."""

    is_no_queue = True
    durable = False

    def __init__(self, channel: ReplyChannel, tag: str, key: bytes) -> None:
        self.channel = channel
        self.tag = tag
        self.key = key
        self.name = key.decode()

    def publish(self, messages: list[Message], flags: int, size: int) -> int:
        """Deliver at once, also to who is slow: what is not read is bounded by the transport.

        The delivery tag is the channel's next one, not used up: RabbitMQ repeats it too.
        """
        channel = self.channel
        session = channel.session
        tag = self.tag.encode()
        for message in messages:
            session.write(
                encode_deliver(
                    channel.number,
                    tag,
                    channel.next_tag,
                    False,
                    [message],
                    session.connection.frame_max,
                )
            )
        return 0

    def take(self, messages: list[Message], flags: int, size: int) -> int:
        """As `publish`, of a dead letter: there is nothing here that could be blocked."""
        return self.publish(messages, flags, size)


def _ignore(_: bytes) -> None:
    return None


class ReplyTargets:
    """The reply consumers of one vhost, by the key that replies are sent to."""

    def __init__(self, entropy: Entropy) -> None:
        self._entropy = entropy
        self.on_added: Callable[[bytes], None] = _ignore
        self.on_removed: Callable[[bytes], None] = _ignore
        self._targets: dict[bytes, ReplyTarget] = {}

    def add(self, channel: ReplyChannel, tag: str) -> ReplyTarget:
        """Register a channel's reply consumer under a fresh key, which ends in `==` as RabbitMQ's do."""
        parts = (base64.urlsafe_b64encode(self._entropy.token(size)) for size in (12, 16))
        target = ReplyTarget(channel, tag, PREFIX + b".".join(parts))
        self._targets[target.key] = target
        self.on_added(target.key)
        return target

    def remove(self, target: ReplyTarget) -> None:
        """The channel or its consumer is gone."""
        if self._targets.pop(target.key, None) is not None:
            self.on_removed(target.key)

    def find(self, key: bytes) -> ReplyTarget | None:
        """The target that a routing key names."""
        return self._targets.get(key)
