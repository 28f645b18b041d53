# ruff: noqa: E402 - without pyarrow the file is skipped before its imports
"""Whose piece it is, whatever becomes of the answers."""

from __future__ import annotations

import contextlib
import random
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

pa = pytest.importorskip(
    "pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'"
)

from pyspark_amqp.convert import schema_of
from pyspark_amqp.spool.content import Taken, attempt_of, writing
from pyspark_amqp.spool.files import Spool
from pyspark_amqp.spool.offset import Piece
from pyspark_amqp.spool.places import open_store
from pyspark_amqp.spool.posix import PosixStore
from pyspark_amqp.spool.publish import publish
from pyspark_amqp.spool.store import OutcomeUnknown, SpoolError, Store
from tests.support import object_stores
from tests.support.spools import CountedStore

SCHEMA = schema_of(["body"])
PIECE = Piece("s", "q", 1, 0, 1)


class Answers(CountedStore):
    """A folder whose answers to `create` a test gives; `None` of a plan is the folder's own."""

    def __init__(self, root: Path, plan: list[Callable[[Answers, str, Path], bool] | None]) -> None:
        super().__init__(PosixStore(root))
        self.plan = plan

    def create(self, key: str, source: Path) -> bool:
        step = self.plan.pop(0) if self.plan else None
        return self.really(key, source) if step is None else step(self, key, source)

    def really(self, key: str, source: Path) -> bool:
        return super().create(key, source)


def lost_before(store: Answers, key: str, source: Path) -> bool:
    raise OutcomeUnknown("503")


def lost_after(store: Answers, key: str, source: Path) -> bool:
    store.really(key, source)
    raise OutcomeUnknown("no answer")


def repeated(store: Answers, key: str, source: Path) -> bool:
    """The client repeats its request by itself, and is told of its own file."""
    store.really(key, source)
    return store.really(key, source)


def conflict(store: Answers, key: str, source: Path) -> bool:
    """Somebody else's write is under way, and fails."""
    return False


def another_first(store: Answers, key: str, source: Path) -> bool:
    with store.scratch(key) as path:
        write(path, "another")
        assert store.really(key, path)
    return store.really(key, source)


def write(path: Path, attempt: str) -> None:
    with writing(path, PIECE, SCHEMA, attempt) as file:
        file.finish(Taken(0, is_cut=False))


def attempted(store: Answers, attempt: str, pauses: list[float] | None = None) -> bool:
    spool = Spool(store)
    with spool.scratch(PIECE) as path:
        write(path, attempt)
        return publish(
            spool, PIECE, attempt, path, pause=[].append if pauses is None else pauses.append
        )


def winner(store: Answers) -> str:
    with Spool(store).open(PIECE) as path:
        return attempt_of(path)


@pytest.mark.parametrize(
    ("plan", "has_won"),
    [
        ([], True),
        ([lost_before], True),
        ([lost_after], True),
        ([repeated], True),
        ([conflict], True),
        ([lost_before, lost_after], True),
        ([conflict, repeated], True),
        ([another_first], False),
        ([lost_before, another_first], False),
        ([conflict, lost_before, another_first], False),
    ],
)
def test_who_has_won_is_found_by_reading(tmp_path: Path, plan: list, has_won: bool) -> None:  # type: ignore[type-arg]
    store = Answers(tmp_path, list(plan))
    assert attempted(store, "own") is has_won
    assert winner(store) == ("own" if has_won else "another")


def test_it_is_given_up_in_the_end(tmp_path: Path) -> None:
    pauses: list[float] = []
    with pytest.raises(SpoolError, match="503"):
        attempted(Answers(tmp_path, [lost_before] * 10), "own", pauses)
    assert pauses == sorted(pauses)
    assert len(pauses) == 5
    with pytest.raises(SpoolError, match="is said to be taken, and is not there"):
        attempted(Answers(tmp_path, [conflict] * 10), "own")


def test_eight_attempts_at_each_of_many_pieces_give_one_content_each(tmp_path: Path) -> None:
    chosen = random.Random(1)
    kinds = [None, lost_before, lost_after, repeated, conflict]
    for number in range(20):
        root = tmp_path / str(number)
        plan = chosen.choices(kinds, k=8)
        outcomes = Counter(attempted(Answers(root, [plan[at]]), f"attempt {at}") for at in range(8))
        assert outcomes == {True: 1, False: 7}, plan


@pytest.mark.slow
@pytest.mark.parametrize("place", ["folder", "s3"])
@pytest.mark.parametrize(
    "count", [5, pytest.param(1000, marks=[pytest.mark.long, pytest.mark.timeout(1800)])]
)
def test_eight_attempts_at_the_same_time(
    place: str, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One wins, in a folder and on S3, and all read what it wrote."""
    with contextlib.ExitStack() as stack:
        root: Store | Path = tmp_path
        if place == "s3":
            pytest.importorskip("moto", reason="needs moto: run by `make test-spark`")
            for name, value in object_stores.CREDENTIALS.items():
                monkeypatch.setenv(name, value)
            root = open_store(
                f"s3://{object_stores.BUCKET}/races",
                endpoint=stack.enter_context(object_stores.s3_server()),
                region=object_stores.REGION,
                is_http_allowed=True,
            )
        spool = Spool(root)
        pool = stack.enter_context(ThreadPoolExecutor(8))
        for number in range(count):
            piece = Piece("s", "q", number, 0, 1)
            start = threading.Barrier(8)

            def attempt(at: int, piece: Piece = piece, start: threading.Barrier = start) -> bool:
                with spool.scratch(piece) as path:
                    with writing(path, piece, SCHEMA, f"attempt {at}") as file:
                        file.finish(Taken(0, is_cut=False))
                    start.wait()
                    return publish(spool, piece, f"attempt {at}", path)

            won = list(pool.map(attempt, range(8)))
            assert won.count(True) == 1
            with spool.open(piece) as path:
                assert attempt_of(path) == f"attempt {won.index(True)}"
