"""Whole lives of pieces on an S3 server whose answers are lost, forged and late: whose each piece is, and what is read.

Streams live side by side, and stalls with them. A batch's pieces have two attempts each at the same time: one with the
client as it is, one whose client gives up long before a stall ends, so that the store does what it asked for later, when
it has asked again. What the attempts were told is compared with what the server has. No JVM, no broker.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest

pytest.importorskip("pyarrow", reason="needs pyarrow: run by `make test-spark`")
pytest.importorskip("obstore", reason="needs obstore: run by `make test-spark`")
pytest.importorskip("moto", reason="needs moto: run by `make test-spark`")

from pyspark_amqp.convert import schema_of
from pyspark_amqp.spool import Mark, Offset, Piece, Share, Spool, SpoolError, objects, open_store
from pyspark_amqp.spool.content import Taken, attempt_of, writing
from pyspark_amqp.spool.publish import publish
from tests.support import object_stores
from tests.support.versitygw import VersityGateway, program

pytestmark = pytest.mark.slow
SCHEMA = schema_of(["body"])
QUEUE = "q"
SHARE = 0.25
TRIES = 20
Done = TypeVar("Done")


class Size(NamedTuple):
    """How much there is to do."""

    stream_count: int
    batch_count: int
    piece_count: int
    """Pieces of a batch."""
    stall_s: float
    give_up_s: float

    @property
    def total(self) -> int:
        """Pieces of all streams."""
        return self.stream_count * self.batch_count * self.piece_count


class Told(NamedTuple):
    """What an attempt was told, None for an error, and which attempt it read then."""

    attempt: str
    has_won: bool | None
    read: str


SHORT = Size(2, 2, 3, stall_s=0.6, give_up_s=0.3)
WHOLE = Size(100, 10, 10, stall_s=10.0, give_up_s=3.0)


@pytest.fixture
def server(size: Size, tmp_path: Path) -> Iterator[str]:
    """Yield the address of a server; the quick one where it is there, for many pieces."""
    gateway = program() if size is WHOLE else None
    if gateway is None:
        with object_stores.s3_server() as url:
            yield url
        return
    node = VersityGateway(gateway, tmp_path / "s3")
    node.start()
    yield node.url
    node.kill()


def spool_at(url: str) -> Spool:
    return Spool(
        open_store(
            f"s3://{object_stores.BUCKET}/spool",
            endpoint=url,
            region=object_stores.REGION,
            is_http_allowed=True,
        )
    )


def impatient(url: str, give_up_s: float) -> Spool:
    """Return a spool whose requests are given up so soon."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_TIMEOUT", "_LONGEST", "_SILENCE"):
            patch.setattr(objects, name, timedelta(seconds=give_up_s))
        return spool_at(url)


def attempt_in(spool: Spool, piece: Piece) -> str:
    with spool.open(piece) as path:
        return attempt_of(path)


class Streams:
    """Plays driver and tasks of many queries as `take` and Spark do it."""

    def __init__(self, plain: Spool, patient: Spool, hasty: Spool, size: Size) -> None:
        self.plain = plain
        self.spools = (patient, hasty)
        self.size = size
        self.told: list[tuple[str, list[Told]]] = []
        """For each piece which attempt the server has, and what became of all."""
        self.failed: Counter[str] = Counter()

    def live(self, pool: ThreadPoolExecutor) -> None:
        """Take, look at and commit the batches of one stream."""
        driver = self.spools[0]
        stream = uuid.uuid4().hex
        self.again("driver", lambda: driver.open_stream(stream))
        share = Share(self.size.piece_count, self.size.piece_count)
        for seq in range(self.size.batch_count):
            offset = Offset(stream, seq, {QUEUE: share})
            pieces = offset.pieces()
            tried = [(piece, spool) for piece in pieces for spool in self.spools]
            ended = list(pool.map(lambda each: self.task(*each), tried))
            for number, piece in enumerate(pieces):
                told = [*ended[2 * number], *ended[2 * number + 1]]
                self.told.append((attempt_in(self.plain, piece), told))
            outcome = self.again("driver", lambda offset=offset: driver.outcome(offset))
            assert outcome.size_bytes > 0
            self.again("driver", lambda seq=seq: driver.commit(stream, seq))
            assert self.plain.committed(stream) == seq
            left = [each.seq for each in self.plain.pieces(stream) if not each.is_in_doubt]
            assert left == []

    def task(self, piece: Piece, spool: Spool) -> list[Told]:
        """Try until the piece's rows can be read, as Spark does; return what each try was told."""
        told: list[Told] = []
        for _ in range(TRIES):
            attempt, has_won = uuid.uuid4().hex, None
            try:
                if spool.has(piece):
                    return [*told, Told(attempt, False, attempt_in(spool, piece))]
                has_won = self.take(piece, spool, attempt)
                return [*told, Told(attempt, has_won, attempt_in(spool, piece))]
            except SpoolError as error:
                self.failed[str(error).partition(": ")[2].partition(" ")[0]] += 1
                told.append(Told(attempt, has_won, ""))
        raise AssertionError(f"{piece}: {TRIES} tries were not enough")

    def take(self, piece: Piece, spool: Spool, attempt: str) -> bool:
        with spool.scratch(piece) as path:
            with writing(path, piece, SCHEMA, attempt) as file:
                file.finish(Taken(0, is_cut=False))
            spool.siblings(piece)
            if not publish(spool, piece, attempt, path):
                return False
        assert not spool.is_stale(piece)
        spool.mark_acked(piece, Mark(left_out_count=1))
        return True

    def again(self, what: str, step: Callable[[], Done]) -> Done:
        for _ in range(TRIES):
            try:
                return step()
            except SpoolError:
                self.failed[what] += 1
        return step()


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(SHORT, id="short"),
        pytest.param(WHOLE, id="whole", marks=[pytest.mark.long, pytest.mark.timeout(3600)]),
    ],
)
def test_each_piece_is_one_attempts_whatever_becomes_of_answers(
    size: Size,
    server: str,
    monkeypatch: pytest.MonkeyPatch,
    tell: Callable[[str], None],
) -> None:
    for name, value in object_stores.CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with ExitStack() as stack:
        proxy = stack.enter_context(
            object_stores.fault_proxy(server, size.total, SHARE, stall_s=size.stall_s)
        )
        streams = Streams(
            spool_at(server), spool_at(proxy.url), impatient(proxy.url, size.give_up_s), size
        )
        attempts = 2 * size.piece_count * size.stream_count
        pool = stack.enter_context(ThreadPoolExecutor(attempts))
        lives = stack.enter_context(ThreadPoolExecutor(size.stream_count))
        for done in [lives.submit(streams.live, pool) for _ in range(size.stream_count)]:
            done.result()
    if size is WHOLE:
        every = {
            (operation, fault)
            for operation in object_stores.OPERATIONS
            for fault in ("", *object_stores.faults_of(operation))
        }
        assert set(proxy.done) == every
        tell(f"{sum(proxy.done.values())} requests {dict(proxy.done)}, failed {streams.failed}")
    assert len(streams.told) == size.total
    differing = self_lost = 0
    for there, told in streams.told:
        differing += any(each.read not in {"", there} for each in told)
        # Whose answer was an error may have written it.
        self_lost += any(
            (each.attempt == there) is not each.has_won for each in told if each.has_won is not None
        )
    assert (differing, self_lost) == (0, 0)
