# ruff: noqa: E402 - without pyarrow the file is skipped before its imports
"""What the next batch takes, from what is ready."""

from __future__ import annotations

from pathlib import Path

import pytest

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: run by `make test-spark`")

from pyspark_amqp.convert import schema_of
from pyspark_amqp.options import OptionReader
from pyspark_amqp.options.connection import read_addresses
from pyspark_amqp.source import planning
from pyspark_amqp.source.patience import Clock
from pyspark_amqp.source.planning import Counts, Planner, TriggerPatience
from pyspark_amqp.spool import Mark, Offset, Spool
from pyspark_amqp.spool.content import Taken, write_batches
from pyspark_amqp.spool.posix import PosixStore
from pyspark_amqp.wire import (
    ChannelClosed,
    Connection,
    ConnectionLost,
    Publisher,
    UnsuitableQueue,
    connect,
    message_octets,
)
from tests.support.spools import CountedStore, publish


class Ready:
    """Says what a test put into it."""

    def __init__(self, counts: dict[str, int]) -> None:
        self.counts = counts

    def __call__(self) -> dict[str, int]:
        return dict(self.counts)

    def close(self) -> None:
        self.counts = {}


def planner(tmp_path: Path, ready: dict[str, int], **how: int) -> Planner:
    return Planner(Ready(ready), Spool(tmp_path), **how)


def plan(offset: Offset) -> dict[str, tuple[int, int]]:
    return {queue: (share.count, share.consumer_count) for queue, share in offset.plan.items()}


def test_nothing_ready_stays_where_it_is(tmp_path: Path) -> None:
    start = Offset("s", 4)
    assert planner(tmp_path, {"a": 0}).following(start, None) is start


def test_all_that_is_ready_within_the_limit(tmp_path: Path) -> None:
    asked = planner(tmp_path, {"a": 50, "b": 1000, "c": 0})
    found = asked.following(Offset("s", 4), 300)
    assert (found.seq, plan(found)) == (5, {"a": (50, 1), "b": (250, 1)})


def test_no_piece_is_larger_than_the_prefetch(tmp_path: Path) -> None:
    asked = planner(tmp_path, {"a": 1000}, prefetch_count=300, consumer_count=2)
    found = asked.following(Offset("s"), None)
    assert [piece.count for piece in found.pieces()] == [250] * 4


def test_a_run_that_ends_takes_what_was_ready_when_it_began(tmp_path: Path) -> None:
    ready = {"a": 100}
    asked = planner(tmp_path, ready)
    asked.stop_at_what_is_ready()
    offset = Offset("s")
    taken = 0
    for _ in range(5):  # a producer is faster than we are
        ready["a"] = 1000
        following = asked.following(offset, 30)
        if following is offset:
            break
        offset = following
        taken += offset.plan["a"].count
    assert taken == 100


def test_a_queue_that_appears_later_is_not_part_of_a_run_that_ends(tmp_path: Path) -> None:
    ready = {"a": 10}
    asked = planner(tmp_path, ready)
    asked.stop_at_what_is_ready()
    ready["b"] = 10
    assert plan(asked.following(Offset("s"), None)) == {"a": (10, 1)}


def test_what_a_limit_of_octets_left_is_planned_again(tmp_path: Path) -> None:
    spool, schema = Spool(tmp_path), schema_of(["message_id"])
    asked = planner(tmp_path, {"a": 100})
    asked.stop_at_what_is_ready()
    first = asked.following(Offset("s"), None)
    (piece,) = first.pieces()
    publish(
        spool, piece, lambda path: write_batches(path, piece, schema, [], Taken(60, is_cut=True))
    )
    second = asked.following(first, None)
    assert plan(second) == {"a": (40, 1)}
    assert asked.following(second, None) is second


def test_what_was_cut_short_is_known_without_reading_a_piece(tmp_path: Path) -> None:
    store, schema = CountedStore(PosixStore(tmp_path)), schema_of(["message_id"])
    spool = Spool(store)
    asked = Planner(Ready({"a": 100, "b": 100}), spool, consumer_count=2)
    asked.stop_at_what_is_ready()
    first = asked.following(Offset("s"), None)
    for piece in first.pieces():
        publish(spool, piece, lambda path, piece=piece: write_batches(path, piece, schema, []))
        spool.mark_acked(piece, Mark(20 if (piece.queue, piece.part) == ("a", 1) else None))
    store.asked.clear()
    second = asked.following(first, None)
    assert store.asked == ["list", "get"]
    assert plan(second) == {"a": (30, 2)}


def counts(url: str, *queues: str, **how: bool) -> Counts:
    addresses = read_addresses(OptionReader({"amqp.uri": url}))
    return Counts(addresses, queues, retry_timeout_s=0.0, **how)


def test_the_broker_is_asked(broker_url: str, queue: str) -> None:
    ask = counts(broker_url, queue)
    assert ask() == {queue: 0}
    with connect(broker_url) as connection:
        publisher = Publisher(connection)
        publisher.send([message_octets("", queue, b"x")] * 3)
        publisher.flush()
    assert ask() == {queue: 3}
    ask.close()


def test_a_connection_that_broke_meanwhile_is_made_again(broker_url: str, queue: str) -> None:
    ask = counts(broker_url, queue)
    ask()
    assert ask._connection is not None
    ask._connection.transport.close()
    assert ask() == {queue: 0}
    ask.close()


def test_a_missing_queue(broker_url: str, queue: str) -> None:
    with pytest.raises(ChannelClosed, match="no queue 'nowhere'"):
        counts(broker_url, "nowhere", queue)()
    lenient = counts(broker_url, "nowhere", queue, fails_on_missing_queue=False)
    assert lenient() == {queue: 0}
    lenient.close()


def test_what_is_known_of_queues_goes_with_them(
    broker_url: str, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pattern may find other queues each time, and a name may come again as a stream."""
    looked_at: list[str] = []

    def look(_connection: Connection, name: str) -> str:
        looked_at.append(name)
        return "stream" if len(looked_at) == 3 else "classic"

    monkeypatch.setattr(planning, "queue_type", look)
    names = [queue]
    ask = Counts(
        read_addresses(OptionReader({"amqp.uri": broker_url})),
        names,
        retry_timeout_s=0.0,
        fails_on_missing_queue=False,
    )
    ask()
    ask()
    assert looked_at == [queue]
    for number in range(20):
        names[:] = [f"{queue}-{number}"]
        assert ask() == {}
    assert not ask._checked
    names[:] = [queue]
    ask()
    assert looked_at == [queue, queue]
    names.clear()
    ask()
    names.append(queue)
    with pytest.raises(UnsuitableQueue, match="it is a stream"):
        ask()
    ask.close()


def test_a_queue_that_could_not_be_looked_at_is_looked_at_again(
    broker_url: str, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(connection: Connection, _name: str) -> str:
        raise ConnectionLost(connection.place, "asking", "gone")

    ask = counts(broker_url, queue)
    monkeypatch.setattr(planning, "queue_type", fail)
    with pytest.raises(ConnectionLost):
        ask()
    monkeypatch.setattr(planning, "queue_type", lambda _connection, _name: "stream")
    with pytest.raises(UnsuitableQueue, match="it is a stream"):
        ask()
    ask.close()


class SetClock(Clock):
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def now_s(self) -> float:
        return self.at_s


def test_a_batch_waits_for_messages_or_for_its_time(tmp_path: Path) -> None:
    ready, clock = {"a": 3, "b": 0}, SetClock()
    asked = Planner(Ready(ready), Spool(tmp_path), patience=TriggerPatience(10, 60.0, clock))
    start = Offset("s")
    assert asked.following(start, None) is start
    assert asked.ready_counts == ready
    clock.at_s = 59.0
    assert asked.following(start, None) is start
    clock.at_s = 60.0
    assert plan(asked.following(start, None)) == {"a": (3, 1)}
    clock.at_s = 61.0  # the next wait begins anew
    assert asked.following(start, None) is start
    ready["b"] = 7
    assert plan(asked.following(start, None)) == {"a": (3, 1), "b": (7, 1)}


def test_what_ends_or_takes_all_does_not_wait(tmp_path: Path) -> None:
    patience = TriggerPatience(10, 60.0, SetClock())
    asked = Planner(Ready({"a": 3}), Spool(tmp_path), patience=patience)
    assert plan(asked.following(Offset("s"), None, takes_all=True)) == {"a": (3, 1)}
    asked.stop_at_what_is_ready()
    assert plan(asked.following(Offset("s"), 2)) == {"a": (2, 1)}
