"""What is here of a batch after a stop, message by message: a power cut keeps of a commit what it will.

A kill leaves the beginning of a batch, or all of it. A power cut may leave any part: a torn page in the middle of what
was not synced yet takes the messages that were on it. They come again from the other broker, which has an ack of all of
a batch or none. So what is here of it is passed over up to the first that is missing; what is here behind that one is
taken out, and all of it is stored again, in its order. It is taken out only when the other broker has given it again:
a message that is missing because somebody took it from the queue here was acknowledged there perhaps, with the rest.

Messages are known by their ids in the queue here, which are not lower than those before the batch, and by their
digests: somebody else may have published, too. State: none. Called by `move`.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Final

from burrowmq.broker.imports.recognise import SIZE, digest
from burrowmq.broker.queue.browse import Seen, browse_from
from burrowmq.broker.queue.queue import Queue
from burrowmq.records import dataclass

OTHERS: Final = 1000
"""So many messages of others may stand between those of a batch that are found."""
READ_S: Final = 30.0

Places = list[Seen | None]
"""Of each message of a batch where it stands in the queue here, None when it does not."""


async def look(queue: Queue, next_ids: Iterable[int], count: int) -> list[Seen]:
    """What stands in the queue from these ids on, one for each priority. Raises: TimeoutError."""
    found: list[Seen] = []
    for level, first in zip(queue.levels, next_ids, strict=False):
        answer: asyncio.Future[list[Seen]] = asyncio.get_running_loop().create_future()

        def seen(some: list[Seen], answer: asyncio.Future[list[Seen]] = answer) -> None:
            if not answer.done():
                answer.set_result(some)

        browse_from(level, first, count + OTHERS, seen)
        async with asyncio.timeout(READ_S):
            found += await answer
    return found


def places_of(batch: bytes, seen: Iterable[Seen]) -> Places:
    """Which messages of a batch (their digests) are among those seen; alike ones have one priority, and an order."""
    by_digest: defaultdict[bytes, deque[Seen]] = defaultdict(deque)
    for each in seen:
        by_digest[digest(each.message)].append(each)
    return [
        found.popleft() if (found := by_digest.get(batch[at : at + SIZE])) else None
        for at in range(0, len(batch), SIZE)
    ]


def beginning(places: Sequence[Seen | None], first: int = 0) -> int:
    """Up to which message, from the first one on, all are here."""
    for index in range(first, len(places)):
        if places[index] is None:
            return index
    return len(places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Torn:
    """A batch with gaps comes again: what is here of it behind the first gap is to be taken out."""

    kept: int
    """How many of the batch are passed over before that."""
    missing: bytes
    """The digests of those that come then, to be stored."""
    behind: tuple[Seen, ...]


def torn(batch: bytes, places: Places, candidates: bytes, count: int) -> Torn | None:
    """What is to be done when the last `count` of the candidates come again, which end with the batch; None: nothing.

    The candidates are all that is known, or the persistent messages of it (`recognise.repeated`).
    """
    numbers = list(range(len(places)))
    if candidates[len(candidates) - len(batch) :] != batch:
        numbers = [each for each in numbers if batch[each * SIZE + SIZE - 1] & 1]
    some = [places[each] for each in numbers]
    gap = beginning(some, max(0, len(some) - count))
    if gap == len(some):
        return None
    missing = len(some) - gap
    return Torn(
        kept=numbers[gap],
        missing=candidates[len(candidates) - missing * SIZE :],
        behind=tuple(each for each in places[numbers[gap] :] if each is not None),
    )
