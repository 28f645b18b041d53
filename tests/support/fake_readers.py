"""What `tests.support.fake_jetstream` has of streams that keep what was read: their limits, and consumers of one reader each.

State owned: the readers of one stream. What it has to say is said by the stream's servers, in `run`.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from burrowmq.cluster.retained import at_time
from burrowmq.cluster.wire import Delivered


class FakeReader:
    """A consumer without acknowledgements; `next_sequence` is what it is given next."""

    def __init__(self, next_sequence: int) -> None:
        self.next_sequence = next_sequence
        self.number = 0
        self.pulls: deque[list[Any]] = deque()  # link, reply, how many


class Retained:
    """The side of a stream that concerns readers; `held` are its messages by sequence."""

    def __init__(self) -> None:
        self.held: dict[int, bytes] = {}
        self.subjects: dict[int, str] = {}
        self.stored_ms: dict[int, int] = {}
        self.readers: dict[str, FakeReader] = {}
        self.made: list[dict[str, Any]] = []
        """What readers were asked for with."""

    def make_reader(self, config: dict[str, Any], last: int) -> dict[str, Any]:
        self.made.append(config)
        first = min(self.held, default=last + 1)
        match config["deliver_policy"]:
            case "all":
                begin = first
            case "last":
                begin = max(self.held, default=last + 1)
            case "by_start_sequence":
                begin = max(first, config["opt_start_seq"])
            case "by_start_time":
                at = config["opt_start_time"]
                begin = min(
                    (each for each, ms in self.stored_ms.items() if each in self.held and _text(ms) >= at),
                    default=last + 1,
                )  # fmt: skip
            case _:
                begin = last + 1
        self.readers[config["name"]] = FakeReader(begin)
        return {"delivered": {"stream_seq": begin - 1}}

    def counts(self) -> dict[str, int]:
        """Chunks by their subjects."""
        found: dict[str, int] = {}
        for sequence in self.held:
            subject = self.subjects[sequence]
            found[subject] = found.get(subject, 0) + 1
        return found

    def let_go(self, config: dict[str, Any], wall_ms: int) -> None:
        """Of what is beyond the limits."""
        age_ms, most = config["max_age"] // 1_000_000, config["max_bytes"]
        for sequence in sorted(self.held):
            is_old = age_ms > 0 and self.stored_ms[sequence] + age_ms <= wall_ms
            if not is_old and (most < 0 or sum(map(len, self.held.values())) <= most):
                return
            del self.held[sequence]

    def serve(self, name: str) -> list[tuple[Any, Delivered]]:
        """What goes out now, to whom."""
        out = []
        for reader_name, reader in self.readers.items():
            reader.pulls = deque(pull for pull in reader.pulls if pull[0].sid_of(pull[1]))
            waiting = sorted(each for each in self.held if each >= reader.next_sequence)
            for sequence in waiting:
                if not reader.pulls:
                    break
                link, inbox, _ = reader.pulls[0]
                reader.number += 1
                reader.next_sequence = sequence + 1
                time_ns = self.stored_ms[sequence] * 1_000_000
                reply = f"$JS.ACK.{name}.{reader_name}.1.{sequence}.{reader.number}.{time_ns}.0"
                subject = self.subjects[sequence].encode()
                out.append(
                    (link, Delivered(link.sid_of(inbox), subject, reply.encode(), b"", self.held[sequence]))
                )  # fmt: skip
                reader.pulls[0][2] -= 1
                if not reader.pulls[0][2]:
                    reader.pulls.popleft()
        return out


def _text(wall_ms: int) -> str:
    return str(dict(at_time(wall_ms).fields)["opt_start_time"])
