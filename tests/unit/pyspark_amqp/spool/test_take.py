# ruff: noqa: E402 - without pyarrow the file is skipped before its imports
from __future__ import annotations

import importlib
from pathlib import Path

import pytest

pa = pytest.importorskip(
    "pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'"
)

from pyspark_amqp.convert import BadMessage, schema_of
from pyspark_amqp.spool import (
    Doubt,
    Mark,
    Piece,
    Spool,
    StaleTask,
    TakeOptions,
    how_much,
    message_ids,
    read_batches,
    take,
    taking,
)
from pyspark_amqp.spool.content import keep_ids, write_batches
from pyspark_amqp.spool.posix import PosixStore
from pyspark_amqp.wire import Consumer, Publisher, connect, message_octets, queue_state
from pyspark_amqp.wire.properties import encode
from tests.support.spools import CountedStore
from tests.support.spools import publish as publish_file

pytestmark = pytest.mark.needs_server

take_module = importlib.import_module("pyspark_amqp.spool.take")  # not the function of that name
SCHEMA = schema_of(["body"])
QUICK = TakeOptions(idle_timeout_s=0.3)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path)


def publish(url: str, queue: str, count: int, *, has_ids: bool = True) -> None:
    blocks = [encode({"message_id": f"m{n}"} if has_ids else {}) for n in range(count)]
    with connect(url) as connection:
        publisher = Publisher(connection)
        publisher.send(
            [message_octets("", queue, b"%d" % n, properties=b) for n, b in enumerate(blocks)]
        )
        publisher.flush()


def taken(url: str, spool: Spool, piece: Piece, options: TakeOptions = QUICK) -> list[bytes]:
    if not spool.has(piece):
        with connect(url) as connection:
            take(spool, piece, connection, SCHEMA, options)
    found: list[bytes] = []
    with spool.open(piece) as path:
        for batch in read_batches(path, SCHEMA):
            found += batch.column("body").to_pylist()
    return found


def ids_of(spool: Spool, piece: Piece) -> list[str]:
    with spool.open(piece) as path:
        return message_ids(path).to_pylist()


def ready(url: str, queue: str) -> int:
    with connect(url) as connection:
        return queue_state(connection, queue).ready_count


def test_a_piece_is_taken_once_and_read_again_as_it_was(
    broker_url: str, queue: str, spool: Spool
) -> None:
    publish(broker_url, queue, 30)
    piece = Piece("s", queue, 1, 0, 20)
    first = taken(broker_url, spool, piece)
    assert first == [b"%d" % n for n in range(20)]
    assert ready(broker_url, queue) == 10
    assert taken(broker_url, spool, piece) == first
    assert ready(broker_url, queue) == 10
    assert spool.in_doubt("s", queue) == []


def test_an_empty_piece_stays_empty(broker_url: str, queue: str, spool: Spool) -> None:
    piece = Piece("s", queue, 1, 0, 20)
    assert taken(broker_url, spool, piece) == []
    publish(broker_url, queue, 5)
    assert taken(broker_url, spool, piece) == []
    assert ready(broker_url, queue) == 5


def test_who_is_second_gives_its_messages_back(
    broker_url: str, queue: str, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(broker_url, queue, 10)
    piece = Piece("s", queue, 1, 0, 10)
    first = schema_of(["body", "message_id"])
    rows = [{"body": b"of the first", "message_id": "other"}]
    batch = pa.RecordBatch.from_pylist(rows, first)
    # The other attempt publishes while this one consumes.
    with monkeypatch.context() as patch:
        patch.setattr(Spool, "has", lambda *_: False)
        publish_file(spool, piece, lambda path: write_batches(path, piece, first, [batch]))
        assert taken(broker_url, spool, piece) == [b"of the first"]
    assert ready(broker_url, queue) == 10
    assert len(spool.in_doubt("s", queue)) == 1


def test_what_is_in_doubt_is_left_out_but_acknowledged(
    broker_url: str, queue: str, spool: Spool
) -> None:
    publish(broker_url, queue, 10)
    earlier = Piece("s", queue, 1, 0, 4)
    stored = schema_of(["message_id"])
    ids = pa.RecordBatch.from_pydict({"message_id": [f"m{n}" for n in range(4)]})
    publish_file(spool, earlier, lambda path: write_batches(path, earlier, stored, [ids]))
    found = taken(broker_url, spool, Piece("s", queue, 2, 0, 10))
    assert found == [b"%d" % n for n in range(4, 10)]
    assert ready(broker_url, queue) == 0


@pytest.mark.parametrize("has_ids", [True, False])
def test_without_comparison_or_ids_nothing_is_left_out(
    broker_url: str, queue: str, spool: Spool, has_ids: bool
) -> None:
    publish(broker_url, queue, 3, has_ids=has_ids)
    earlier = Piece("s", queue, 1, 0, 3)
    stored = schema_of(["message_id"])
    ids = pa.RecordBatch.from_pydict({"message_id": [f"m{n}" for n in range(3)]})
    publish_file(spool, earlier, lambda path: write_batches(path, earlier, stored, [ids]))
    options = TakeOptions(idle_timeout_s=0.3, is_deduplicating=not has_ids)
    assert len(taken(broker_url, spool, Piece("s", queue, 2, 0, 3), options)) == 3


def test_a_task_that_comes_too_late_acknowledges_nothing(
    broker_url: str, queue: str, spool: Spool
) -> None:
    publish(broker_url, queue, 5)
    piece = Piece("s", queue, 1, 0, 5)
    spool.commit("s", 1)
    with pytest.raises(StaleTask, match="batch 1"):
        taken(broker_url, spool, piece)
    assert not spool.has(piece)
    assert ready(broker_url, queue) == 5


def test_the_ids_are_kept_for_comparison_only_where_wanted(
    broker_url: str, queue: str, spool: Spool
) -> None:
    publish(broker_url, queue, 2)
    first, second = (Piece("s", queue, seq, 0, 1) for seq in (1, 2))
    taken(broker_url, spool, first)
    assert ids_of(spool, first) == ["m0"]
    taken(broker_url, spool, second, TakeOptions(idle_timeout_s=0.3, is_deduplicating=False))
    assert ids_of(spool, second) == []


def test_what_a_broker_brings_back_is_left_out_while_it_is_remembered(
    broker_url: str, queue: str, spool: Spool
) -> None:
    """A broker that crashes may have forgotten acknowledgements: committed pieces count too."""
    publish(broker_url, queue, 4)
    remembering = TakeOptions(idle_timeout_s=0.3, is_remembering=True)
    for seq in (1, 2):
        taken(broker_url, spool, Piece("s", queue, seq, 0, 2), remembering)
    spool.commit("s", 1, keep_ids, 60.0)
    publish(broker_url, queue, 5)
    found = taken(broker_url, spool, Piece("s", queue, 3, 0, 5), remembering)
    assert found == [b"4"]
    assert ready(broker_url, queue) == 0
    assert len(spool.kept_ids("s", queue)) == 1
    spool.commit("s", 3, None, 60.0)
    assert len(spool.kept_ids("s", queue)) == 1
    spool.commit("s", 3)
    assert spool.kept_ids("s", queue) == []
    publish(broker_url, queue, 5)
    found = taken(broker_url, spool, Piece("s", queue, 4, 0, 5), remembering)
    assert len(found) == 5


def test_a_message_that_must_not_be_shown_otherwise_stays_where_it_is(
    broker_url: str, queue: str, spool: Spool
) -> None:
    with connect(broker_url) as connection:
        publisher = Publisher(connection)
        for app_id in (b"good", b"\xff"):
            block = b"\x00\x08" + bytes((len(app_id),)) + app_id
            publisher.send([message_octets("", queue, app_id, properties=block)])
        publisher.flush()
    piece = Piece("s", queue, 1, 0, 2)
    schema = schema_of(["app_id"])
    with connect(broker_url) as connection, pytest.raises(BadMessage, match="app_id is no UTF-8"):
        take(spool, piece, connection, schema, QUICK._replace(is_strict=True))
    assert not spool.has(piece)
    assert ready(broker_url, queue) == 2
    with connect(broker_url) as connection:
        take(spool, piece, connection, schema, QUICK)
    with spool.open(piece) as path:
        (batch,) = read_batches(path, schema)
    assert batch.column(0).to_pylist() == ["good", "\ufffd"]


def test_a_piece_is_written_while_it_comes(
    broker_url: str, queue: str, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No more than a chunk is held; chunks that end by their octets are not the end of the piece."""
    publish(broker_url, queue, 50)
    monkeypatch.setattr(take_module, "CHUNK_BYTES", 10)
    sizes: list[int] = []
    read = Consumer.read

    def counted(*arguments: object, **named: object) -> object:
        found = read(*arguments, **named)  # type: ignore[arg-type]
        sizes.append(len(found))
        return found

    monkeypatch.setattr(Consumer, "read", counted)
    piece = Piece("s", queue, 1, 0, 40)
    assert taken(broker_url, spool, piece) == [b"%d" % n for n in range(40)]
    assert max(sizes) <= 10
    assert ready(broker_url, queue) == 10


def test_a_limit_of_octets_ends_the_piece(broker_url: str, queue: str, spool: Spool) -> None:
    publish(broker_url, queue, 20, has_ids=False)
    piece = Piece("s", queue, 1, 0, 20)
    options = QUICK._replace(size_limit=12)
    found = taken(broker_url, spool, piece, options)
    assert 0 < len(found) < 20
    with spool.open(piece) as path:
        assert how_much(path) == (len(found), True)
    assert ready(broker_url, queue) == 20 - len(found)


def test_what_the_planner_knew_and_its_siblings_are_compared(
    broker_url: str, queue: str, spool: Spool
) -> None:
    publish(broker_url, queue, 6)
    stored = schema_of(["message_id"])

    def left(piece: Piece, *ids: str) -> str:
        batch = pa.RecordBatch.from_pydict({"message_id": list(ids)})
        publish_file(spool, piece, lambda path: write_batches(path, piece, stored, [batch]))
        return spool.key(piece)

    doubted = left(Piece("s", queue, 1, 0, 1), "m0")
    left(Piece("s", queue, 1, 1, 1), "m1")  # the planner says nothing of it
    left(Piece("s", queue, 2, 1, 1), "m2")  # a sibling that died after publishing
    piece = Piece("s", queue, 2, 0, 6)
    with connect(broker_url) as connection:
        take(spool, piece, connection, SCHEMA, QUICK, Doubt((doubted,), has_siblings=True))
    assert taken(broker_url, spool, piece) == [b"1", b"3", b"4", b"5"]
    mark = spool.store.get(spool.key(piece).replace(".arrow", ".acked"))
    assert mark is not None
    assert Mark.read(mark) == Mark(left_out_count=2)


def test_a_piece_costs_few_requests(broker_url: str, queue: str, tmp_path: Path) -> None:
    store = CountedStore(PosixStore(tmp_path))
    spool = Spool(store)
    publish(broker_url, queue, 4)
    for part, doubt in enumerate((Doubt(has_siblings=False), Doubt(has_siblings=True))):
        store.asked.clear()
        piece = Piece("s", queue, 1, part, 2)
        assert not spool.has(piece)
        with (
            connect(broker_url) as connection,
            taking(spool, piece, connection, SCHEMA, QUICK, doubt) as own,
        ):
            assert own is not None
            assert how_much(own) == (2, False)
        siblings = ["list"] if part else []  # the one before is acknowledged: nothing to compare
        assert store.asked == ["head", *siblings, "create", "get", "put"]


def test_who_was_not_first_has_no_file(broker_url: str, queue: str, spool: Spool) -> None:
    publish(broker_url, queue, 2)
    piece = Piece("s", queue, 1, 0, 2)
    publish_file(spool, piece, lambda path: write_batches(path, piece, SCHEMA, []))
    with (
        connect(broker_url) as connection,
        taking(spool, piece, connection, SCHEMA, QUICK, Doubt(has_siblings=False)) as own,
    ):
        assert own is None


def test_what_a_task_left_that_came_too_late_is_compared_with_nothing(
    broker_url: str, queue: str, spool: Spool
) -> None:
    """Nobody reads its piece: its messages, which went back to the queue, have to come."""
    publish(broker_url, queue, 3)
    spool.commit("s", 1)
    zombie = Piece("s", queue, 1, 0, 3)
    ids = pa.RecordBatch.from_pydict({"message_id": ["m0", "m1", "m2"]})
    stored = schema_of(["message_id"])
    publish_file(spool, zombie, lambda path: write_batches(path, zombie, stored, [ids]))
    assert spool.compared("s", spool.pieces("s")) == []
    remembering = QUICK._replace(is_remembering=True)
    assert taken(broker_url, spool, Piece("s", queue, 2, 0, 3), remembering) == [b"0", b"1", b"2"]


def test_what_was_in_doubt_when_its_batch_was_committed_is_compared_for_ever(
    broker_url: str, queue: str, spool: Spool
) -> None:
    publish(broker_url, queue, 3)
    first = Piece("s", queue, 1, 0, 3)
    ids = pa.RecordBatch.from_pydict({"message_id": ["m0", "m1"]})
    stored = schema_of(["message_id"])
    publish_file(spool, first, lambda path: write_batches(path, first, stored, [ids]))
    for seq in (1, 2):
        spool.commit("s", seq)
    assert [each.is_read for each in spool.pieces("s")] == [True]
    assert taken(broker_url, spool, Piece("s", queue, 3, 0, 3)) == [b"2"]
