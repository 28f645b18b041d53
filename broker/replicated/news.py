"""What front-ends tell each other of their queues: that something has changed in a stream, that a queue was used.

Once in `NEWS_S` there is one message on one subject for each of the two: who tells it, and the names of the streams.
Core NATS: who is not connected at that moment does not hear it, so nothing may depend on one message.

State owned: the names that are to be told. Called by `broker.replicated.front_end`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from burrowmq.broker.turn.clock import Scheduler
from burrowmq.cluster.wire import Delivered, encode_publish

NEWS_S: Final = 1.0
CHANGED: Final = b"burrowmq.news"
USED: Final = b"burrowmq.used"
SUBJECTS: Final = (CHANGED, USED)
_AT_ONCE: Final = 100
"""Streams that one message names, 33 octets each: servers may take only small messages."""


class Hearer(Protocol):
    """A queue, as far as it hears of others."""

    def cluster_news(self, who: str) -> None:
        """Another front-end has changed something in the stream."""
        ...

    def cluster_used(self) -> None:
        """Another front-end has clients that use the queue."""
        ...


class News:
    """Those of the front-end `who`; `hearers` are its queues by their streams."""

    def __init__(
        self,
        who: str,
        scheduler: Scheduler,
        write: Callable[[bytes], None],
        hearers: Mapping[str, Hearer],
    ) -> None:
        self._who = who
        self._scheduler = scheduler
        self._write = write
        self._hearers = hearers
        self._names: dict[bytes, set[str]] = {subject: set() for subject in SUBJECTS}
        self._is_telling = False

    def tell(self, subject: bytes, stream: str) -> None:
        """Have other front-ends know, soon."""
        self._names[subject].add(stream)
        if not self._is_telling:
            self._is_telling = True
            self._scheduler.call_later(NEWS_S, self._tell)

    def _tell(self) -> None:
        self._is_telling = False
        for subject, found in self._names.items():
            names = sorted(found)
            found.clear()
            for start in range(0, len(names), _AT_ONCE):
                text = " ".join((self._who, *names[start : start + _AT_ONCE])).encode()
                self._write(encode_publish(subject, text))

    def heard(self, deliveries: list[Delivered]) -> None:
        """Others have told something."""
        for delivered in deliveries:
            who, *names = delivered.payload.decode("ascii", "replace").split() or ("",)
            for name in names:
                hearer = self._hearers.get(name)
                if hearer is None:
                    continue
                if delivered.subject == USED:
                    hearer.cluster_used()
                else:
                    hearer.cluster_news(who)
