"""burrowmq.broker.imports.remains: which messages of a batch are here, and what is to be done when it comes again."""

from __future__ import annotations

import asyncio

import pytest

from burrowmq.broker.imports import remains
from burrowmq.broker.imports.recognise import SIZE, digest
from burrowmq.broker.queue.browse import Seen
from tests.support.messages import body_of, message
from tests.support.queue_bench import QueueBench


def seen(*bodies: str, level: int = 0) -> list[Seen]:
    return [
        Seen(level, 100 + at, message(body.encode(), persistent=body.isupper()), 0, False)
        for at, body in enumerate(bodies)
    ]


def digests(bodies: str) -> bytes:
    """Capitals are persistent."""
    return b"".join(digest(message(body.encode(), persistent=body.isupper())) for body in bodies)


def places(batch: str, here: str) -> remains.Places:
    return remains.places_of(digests(batch), seen(*here))


def text(some: remains.Places) -> str:
    return "".join("." if each is None else body_of(each.message.raw).decode() for each in some)


@pytest.mark.parametrize(
    ("batch", "here", "found", "beginning"),
    [
        ("ABCD", "", "....", 0), ("ABCD", "ABCD", "ABCD", 4), ("ABCD", "AB", "AB..", 2), ("ABCD", "ACD", "A.CD", 1),
        ("ABCD", "XAYD", "A..D", 1), ("AAAB", "AAB", "AA.B", 2), ("AbC", "AC", "A.C", 1), ("", "A", "", 0),
        ("ABCD", "CDAB", "ABCD", 4),
    ],
)  # fmt: skip
def test_a_message_is_here_as_often_as_it_is_found(
    batch: str, here: str, found: str, beginning: int
) -> None:
    """Those of two priorities may be found in another order: what counts is the order of the batch."""
    some = places(batch, here)
    assert text(some) == found
    assert remains.beginning(some) == beginning


@pytest.mark.parametrize(
    ("known", "batch", "here", "count", "kept", "missing", "behind"),
    [
        ("XYABCD", "ABCD", "A.C.", 4, 1, "BCD", "C"),
        ("XYABCD", "ABCD", "A.C.", 6, 1, "BCD", "C"),  # those before it come again, too
        ("XYABCD", "ABCD", "A.CD", 2, None, "", ""),  # only C and D come: both are here
        ("XYABCD", "ABCD", "A.C.", 2, 3, "D", ""),
        ("XYABCD", "ABCD", "A.C.", 0, None, "", ""),  # it was acknowledged there
        ("XYABCD", "ABCD", ".BCD", 4, 0, "ABCD", "BCD"),
        ("XYAbCD", "AbCD", "A.CD", 4, 1, "bCD", "CD"),
    ],
)  # fmt: skip
def test_what_is_behind_the_first_gap_goes(
    known: str, batch: str, here: str, count: int, kept: int | None, missing: str, behind: str
) -> None:
    torn = remains.torn(digests(batch), places(batch, here.replace(".", "")), digests(known), count)
    if kept is None:
        assert torn is None
        return
    assert torn is not None
    assert (torn.kept, torn.missing) == (kept, digests(missing))
    assert text(list(torn.behind)) == behind


def test_of_a_broker_that_has_lost_what_was_transient_only_the_rest_comes() -> None:
    """The candidates are the persistent ones then; what is kept is said of the whole batch."""
    some = places("AbCdE", "AbE")
    assert remains.torn(digests("AbCdE"), some, digests("XACE"), 3) == remains.Torn(
        kept=2,
        missing=digests("CE"),
        behind=(some[4],),  # type: ignore[arg-type] - it is here
    )
    some = places("AbCdE", "ACE")
    assert remains.torn(digests("AbCdE"), some, digests("XACE"), 3) is None


def test_the_queue_is_looked_at_from_those_ids_on() -> None:
    bench = QueueBench(max_priority=1)
    for body, priority in ((b"a", 0), (b"b", 1), (b"c", 0), (b"d", 1), (b"e", 0)):
        bench.publish(message(body, persistent=True, priority=priority))
    found = asyncio.run(remains.look(bench.queue, (1, 1), 5))
    assert [body_of(each.message.raw) for each in found] == [b"c", b"e", b"d"]
    assert digest(found[0].message) == digest(message(b"c", persistent=True, priority=0))
    assert len(digest(found[0].message)) == SIZE


def test_a_disk_that_does_not_answer_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remains, "READ_S", 0.0)
    bench = QueueBench(queue_mode="lazy", answers_later=True)
    bench.publish(message(b"a", persistent=True))
    bench.queue.levels.page_out()

    async def look() -> None:
        with pytest.raises(TimeoutError):
            await remains.look(bench.queue, (0,), 1)
        bench.engine.answer_reads()  # late: nobody waits any more

    asyncio.run(look())
