"""What crash clients remember: which messages were published, confirmed, delivered and acked.

State: in memory, in the test's process, which outlives the broker's kills (so no file is needed).
Callers: kill_cycles and the headline test. A body is self-describing: a head with queue set,
publisher, number and total length, then filler, then a CRC-32 of all before it; so corruption,
truncation and exchange of bodies show without a second copy.
Invariants: a number is marked confirmed only when the broker's basic.ack has been read.
"""

from __future__ import annotations

import random
import struct
import zlib
from dataclasses import dataclass, field

HEAD = struct.Struct(">HII")  # publisher, number, body length
SMALLEST = HEAD.size + 4


def make_body(publisher: int, number: int, size: int) -> bytes:
    """Return a body of `size` bytes (at least SMALLEST) that says what it is."""
    size = max(size, SMALLEST)
    head = HEAD.pack(publisher, number, size)
    # Deterministic filler that never repeats at page distance: a shifted copy would not pass.
    seed = random.Random(publisher << 32 | number).randbytes(min(size - SMALLEST, 251))
    filler = (seed * ((size - SMALLEST) // max(len(seed), 1) + 1))[: size - SMALLEST]
    body = head + filler
    return body + struct.pack(">I", zlib.crc32(body))


def read_body(body: bytes) -> tuple[int, int] | None:
    """Return (publisher, number), or None when the body is not what was made."""
    if len(body) < SMALLEST:
        return None
    publisher, number, size = HEAD.unpack_from(body)
    (crc,) = struct.unpack_from(">I", body, len(body) - 4)
    if size != len(body) or crc != zlib.crc32(body[:-4]):
        return None
    return publisher, number


@dataclass
class QueueLedger:
    """One queue's truth: what its consumers saw and settled."""

    delivered: set[tuple[int, int]] = field(default_factory=set)
    acked: set[tuple[int, int]] = field(default_factory=set)


@dataclass
class Verdict:
    """What a comparison after a crash found; all numbers but `drained` must be zero."""

    drained: int = 0
    lost: int = 0
    corrupt: int = 0
    duplicated: int = 0
    out_of_order: int = 0
    unflagged: int = 0
    acked_came_back: int = 0

    def add(self, other: Verdict) -> None:
        """Sum up over queues and cycles."""
        for key in vars(other):
            setattr(self, key, getattr(self, key) + getattr(other, key))

    @property
    def wrong(self) -> int:
        """Count what went wrong."""
        return sum(value for key, value in vars(self).items() if key not in ALLOWED)

    @property
    def is_clean(self) -> bool:
        """Say whether nothing went wrong."""
        return not self.wrong


# An ack is a promise of the client's, not of the broker's: one that the crash overtook may be
# undone, so an acked message that comes back is counted but allowed.
ALLOWED = {"drained", "acked_came_back"}


def judge(
    ledger: QueueLedger,
    confirmed: set[tuple[int, int]],
    drained: list[tuple[tuple[int, int] | None, bool]],
    *,
    expect_redelivered: bool,
) -> Verdict:
    """Compare a drained queue, [(identity, redelivered)], with what is known of it."""
    verdict = Verdict(drained=len(drained))
    seen: set[tuple[int, int]] = set()
    last: dict[int, int] = {}
    for identity, redelivered in drained:
        if identity is None:
            verdict.corrupt += 1
            continue
        verdict.duplicated += identity in seen
        seen.add(identity)
        publisher, number = identity
        verdict.out_of_order += number <= last.get(publisher, -1)
        last[publisher] = max(number, last.get(publisher, -1))
        verdict.acked_came_back += identity in ledger.acked
        must_be_flagged = expect_redelivered or identity in ledger.delivered
        verdict.unflagged += must_be_flagged and not redelivered
    verdict.lost = len(confirmed - seen - ledger.acked)
    return verdict
