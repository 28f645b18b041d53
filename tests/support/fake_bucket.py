"""A key-value bucket in memory, as far as a watch and who writes rows can tell. Part of `tests.support.fake_jetstream`.

State owned: the last message of each subject, the consumers and what they have been given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Watcher:
    """A consumer of all subjects."""

    next: int = 1
    """All messages before it are given."""
    count: int = 0
    pulls: list[list[Any]] = field(default_factory=list)  # link, reply, how many


class FakeBucket:
    """One stream that keeps the last message of each subject."""

    def __init__(self, created: str) -> None:
        self.created = created
        self.last = 0
        self.messages: dict[int, tuple[str, dict[str, str], bytes]] = {}
        self.watchers: dict[str, Watcher] = {}
        self.shown: int | None = None
        """Watchers are given nothing behind this one: who serves them has lost it, and who leads the stream has not."""

    def put(self, subject: str, headers: dict[str, str], body: bytes) -> dict[str, Any]:
        """What the servers answer."""
        known = next((seq for seq, each in self.messages.items() if each[0] == subject), 0)
        expected = headers.get("Nats-Expected-Last-Subject-Sequence")
        if expected is not None and int(expected) != known:
            text = f"wrong last sequence: {known}"
            return {"error": {"code": 400, "err_code": 10071, "description": text}}
        self.messages.pop(known, None)
        self.last += 1
        self.messages[self.last] = subject, headers, body
        return {"stream": "KV", "seq": self.last}

    def forget(self, subject: str) -> None:
        """The marker of a removed row has had its time."""
        for seq in [seq for seq, each in self.messages.items() if each[0] == subject]:
            del self.messages[seq]

    def go_back(self, last: int) -> None:
        """The servers have lost all that came behind this one."""
        self.messages = {seq: each for seq, each in self.messages.items() if seq <= last}
        self.last = last

    def state(self) -> dict[str, int]:
        return {"messages": len(self.messages), "last_seq": self.last}

    def _is_shown(self, sequence: int) -> bool:
        return self.shown is None or sequence <= self.shown

    def watch(self, name: str) -> dict[str, Any]:
        self.watchers[name] = Watcher()
        return {"num_pending": sum(map(self._is_shown, self.messages))}

    def give(self) -> list[tuple[Any, bytes, str, bytes, dict[str, str], bytes]]:
        """(link, inbox, subject, reply, headers, body) of what watchers have asked for and is there."""
        found = []
        for watcher in self.watchers.values():
            waiting = sorted(
                seq for seq in self.messages if seq >= watcher.next and self._is_shown(seq)
            )
            while waiting and watcher.pulls:
                seq = waiting.pop(0)
                watcher.next, watcher.count = seq + 1, watcher.count + 1
                link, inbox, _ = pull = watcher.pulls[0]
                pull[2] -= 1
                if not pull[2]:
                    watcher.pulls.pop(0)
                reply = f"$JS.ACK.KV.w.1.{seq}.{watcher.count}.0.{len(waiting)}".encode()
                found.append((link, inbox, self.messages[seq][0], reply, *self.messages[seq][1:]))
        return found
