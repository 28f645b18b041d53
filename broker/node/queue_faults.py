"""Queues that the disk does not serve: which, since when and why. Everything else of the node goes on.

While a queue's reads are refused it delivers what is in memory and waits with the rest, in order; publishes are taken.
While its acknowledgements cannot be written they stay in memory. What only the scrubber could not read holds up nobody.
While its messages cannot be written or synced it
refuses publishes, keeps dead letters in memory and serves nobody. The store tries again by itself.
A fault is declared: in the queue's row (`state` blocked, `fault`), as an alarm that fails the health checks and blocks
nobody, in `burrowmq_queues_blocked`, and with one line in the log when it comes and one when it goes.

State owned: the faults, by queue and kind; the last commit of which the disk has refused something. Told by the engine
on the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.report.observer import Observer
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.broker.words.resource import describe
from burrowmq.records import dataclass
from burrowmq.storage.names import QueueNames

# The kinds with which a queue goes on as before.
_SERVING: Final = frozenset({"acknowledging", "scrubbing"})


@dataclass(frozen=True, slots=True)
class QueueFault:
    """One thing that a queue cannot do: `kind` is reading, acknowledging, writing or scrubbing."""

    kind: str
    reason: str
    since_ms: int


class QueueFaults:
    """The faults of this node's queues."""

    def __init__(
        self, observer: Observer, wall_ms: Callable[[], int], vhosts: Mapping[str, Vhost]
    ) -> None:
        self._observer = observer
        self._vhosts = vhosts
        self._wall_ms = wall_ms
        # By virtual host and name, then by level and kind.
        self._found: dict[tuple[str, str], dict[tuple[int, str], QueueFault]] = {}
        self._refused: tuple[int, frozenset[tuple[str, str]]] = (0, frozenset())

    def __len__(self) -> int:
        return len(self._found)

    def changed(self, names: QueueNames, kind: str, reason: str) -> None:
        """The disk refuses something; an empty reason: not any more."""
        queue, place = (names.vhost, names.name), (names.level, kind)
        faults = self._found.get(queue, {})
        is_known = any(each.kind == kind for each in faults.values())
        if reason:
            self._found.setdefault(queue, {})[place] = QueueFault(kind, reason, self._wall_ms())
            if not is_known:
                self._observer.queue_fault(*queue, kind, reason)
        elif faults.pop(place, None) is not None:
            if not any(each.kind == kind for each in faults.values()):
                self._observer.queue_fault_over(*queue, kind)
            if not faults:
                del self._found[queue]
        if kind not in _SERVING:
            self._tell(*queue, kind)

    def refused(self, epoch: int, names: Iterable[QueueNames]) -> None:
        """The disk has refused what the commit `epoch` has for these queues: that is told before the commit is done."""
        self._refused = epoch, frozenset((each.vhost, each.name) for each in names)

    def refused_in(self, epoch: int) -> frozenset[tuple[str, str]]:
        """Give the queues (virtual host, name) of a commit that has just been done which the disk has refused."""
        of, queues = self._refused
        return queues if of == epoch else frozenset()

    def _tell(self, vhost: str, name: str, kind: str) -> None:
        owner = self._vhosts.get(vhost)
        queue = owner.queues.get(name) if owner is not None else None
        if isinstance(queue, Queue) and not queue.is_dormant:
            is_there = any(each.kind == kind for each in self.of(vhost, name))
            if kind == "reading":
                queue.note_unreadable(is_unreadable=is_there)
            else:
                queue.note_blocked(is_blocked=is_there)

    def of(self, vhost: str, queue: str) -> list[QueueFault]:
        """A queue's faults, the oldest first."""
        return list(self._found.get((vhost, queue), {}).values())

    def withheld(self, vhost: str, queue: str) -> str:
        """Why a queue gives nothing, in words for who wants a message of it; empty when it does."""
        for each in self.of(vhost, queue):
            if each.kind not in _SERVING:
                return f"{describe('queue', queue, vhost)} is inaccessible: {each.reason}"
        return ""

    @property
    def cause(self) -> str:
        """In words: how many queues, and the oldest fault. Empty when there is none."""
        for (vhost, queue), faults in self._found.items():
            first = next(iter(faults.values()))
            others = f", and {len(self) - 1} more" if len(self) > 1 else ""
            return f"queue '{queue}' in vhost '{vhost}' ({first.kind}){others}: {first.reason}"
        return ""
