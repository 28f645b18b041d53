"""What many connections write at the end of a turn, sent together.

The loop's own write keeps the interpreter's lock, and wakes who reads at the other end: with two hundred publishers
that wait for their confirms that takes a third of its time, in which the disk thread could do nothing. Here all of it
is one call outside the lock. Where that was not compiled, or BURROWMQ_PURE=1 forbids it, nothing is ever collected.

State owned: what was put since it was opened. It is open only while a turn's outputs are flushed, on the loop.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Protocol, TypeAlias, cast

MANY = 2
"""So many outputs of one turn are worth a call of their own."""

SendEach: TypeAlias = Callable[[list[int], list[bytes]], list[int]]
"""Sends to descriptors what stands at their place; gives how many octets each has taken, -1 where it took nothing."""


class Sender(Protocol):
    """Somebody whose output can be collected."""

    descriptor: int
    """Of a socket that does not block, and for which nothing waits in a buffer; -1 once it was aborted."""

    def sent(self, data: bytes, size: int) -> None:
        """The socket has taken so many of these octets, or -1: the rest is the sender's again."""
        ...


def compiled_send() -> SendEach | None:
    """Give the compiled part; None where it was not built or BURROWMQ_PURE=1 forbids it."""
    if os.environ.get("BURROWMQ_PURE", "") not in ("", "0"):
        return None
    try:
        return cast("SendEach", import_module("burrowmq.broker.turn._send_c").send_each)
    except ImportError:
        return None


class Outbox:
    """That of one scheduler."""

    def __init__(self, report: Callable[[Exception], None], send_each: SendEach | None) -> None:
        """`report`: told what a sender raises. Without `send_each` nothing is ever put here."""
        self._report = report
        self._send_each = send_each
        self._senders: list[Sender] = []
        self._octets: list[bytes] = []
        self.is_open = False

    def open(self) -> None:
        """From now on outputs may be put here, if they can be sent together at all."""
        self.is_open = self._send_each is not None

    def put(self, sender: Sender, data: bytes) -> None:
        """Keep this for `close`; the sender puts nothing else until it was told what became of it."""
        self._senders.append(sender)
        self._octets.append(data)

    def close(self) -> None:
        """Send all that was put, and tell each sender; what one of them raises is reported, and the others are told."""
        self.is_open = False
        senders, self._senders = self._senders, []
        octets, self._octets = self._octets, []
        if not senders or self._send_each is None:
            return
        try:
            sizes = self._send_each([sender.descriptor for sender in senders], octets)
        except Exception as error:  # noqa: BLE001 - each writes by itself then, and finds out what is wrong
            self._report(error)
            sizes = [-1] * len(senders)
        for sender, data, size in zip(senders, octets, sizes, strict=True):
            try:
                sender.sent(data, size)
            except Exception as error:  # noqa: BLE001 - a bug in one must not stop all others
                self._report(error)
