"""Messages on their way between a queue, its store and its consumers: what kind they are, and in which company.

Values only. A `DeliveryRun` is what leaves a backlog's head together, a `Returned` entry what comes back to it, a
`Loaded` one what the store has read. All of them carry the queue's own sequence ids, by which the store knows the
messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import NewType, TypeAlias

from burrowmq.protocol.codec import Message

Kind = NewType("Kind", int)
TRANSIENT = Kind(0)
"""In RAM only."""
LOGGED = Kind(1)
"""In the store under its sequence id, and gone after a restart. As a mask: in the store for whatever reason."""
DURABLE = Kind(3)
"""A persistent message of a durable queue: in the store, and there after a restart."""

Returned: TypeAlias = tuple[int, Message, int, Kind, bool]
"""(sequence id, message, expiry in `Clock.deadline_ms` or 0, kind, redelivered)"""
Loaded: TypeAlias = tuple[int, Message, int]
"""(sequence id, message, expiry in `Clock.deadline_ms` or 0)"""


class DeliveryRun:
    """Messages taken from the head together: all of one kind, all redelivered or all not."""

    __slots__ = ("expiries", "kind", "messages", "redelivered", "seqs", "size")

    def __init__(
        self,
        seqs: Sequence[int],
        messages: list[Message],
        size: int,
        kind: Kind,
        redelivered: bool = False,
        expiries: list[int] | None = None,
    ) -> None:
        self.seqs = seqs
        self.messages = messages
        self.size = size
        self.kind = kind
        self.redelivered = redelivered
        self.expiries = expiries


def returned(
    seqs: Sequence[int],
    messages: Sequence[Message],
    expiries: Sequence[int] | None,
    kind: Kind,
    *,
    redelivered: bool,
) -> list[Returned]:
    """A run, or what is left of one, as single messages that go back into their places."""
    count = len(messages)
    due = expiries or repeat(0, count)
    return list(
        zip(seqs, messages, due, repeat(kind, count), repeat(redelivered, count), strict=True)
    )
