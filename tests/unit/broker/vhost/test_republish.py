"""Dead letters on their way: routing, keys, cycles, counters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from pika import BasicProperties, spec

from burrowmq.protocol.codec import Message
from burrowmq.protocol.table import Long
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.memory_log import MemoryLog
from tests.support.messages import body_of
from tests.support.wire_client import publish_bytes


def declare(client: Client, queue: str, **arguments: Any) -> None:
    found = client.call(
        1,
        spec.Queue.Declare(
            queue=queue, arguments={f"x-{k.replace('_', '-')}": v for k, v in arguments.items()}
        ),
    )
    assert type(found[0][1]).__name__ == "DeclareOk", found


def reject(client: Client, queue: str) -> None:
    ((_, got),) = client.call(1, spec.Basic.Get(queue=queue))
    client.call(1, spec.Basic.Reject(got.delivery_tag, requeue=False))


def headers(client: Client, queue: str) -> dict[str, Any]:
    ((_, got),) = client.call(1, spec.Basic.Get(queue=queue, no_ack=True))
    properties = BasicProperties()
    properties.decode(got.raw_header[12:])
    return dict(properties.headers or {})


def test_a_rejected_message_follows_its_key_or_the_queues():
    bench = BrokerBench()
    client = bench.connect(1)
    declare(client, "work", dead_letter_exchange="", dead_letter_routing_key="dead")
    declare(client, "plain", dead_letter_exchange="amq.fanout")
    declare(client, "dead")
    client.call(1, spec.Queue.Bind(queue="dead", exchange="amq.fanout"))
    for queue in ("work", "plain"):
        client.send(publish_bytes(1, "", queue, b"x"))
        reject(client, queue)
    assert bench.vhost.queues["dead"].ready_count == 2
    assert bench.metrics.dead_lettered_rejected == 2
    found = [headers(client, "dead")["x-death"][0] for _ in range(2)]
    assert [entry["queue"] for entry in found] == ["work", "plain"]


def test_a_missing_exchange_drops_and_counts_it_as_dropped():
    bench = BrokerBench()
    client = bench.connect(1)
    declare(client, "work", dead_letter_exchange="gone")
    client.send(publish_bytes(1, "", "work", b"x"))
    reject(client, "work")
    assert bench.vhost.queues["work"].unacked_count == 0
    assert (bench.metrics.dead_lettered_rejected, bench.metrics.dropped_rejected) == (0, 1)


def test_what_dies_where_no_exchange_is_set_is_counted_by_its_reason():
    """As RabbitMQ 3.10.8 counts it, live: refusals count with reject-publish-dlx only, purges and deletions never."""
    bench = BrokerBench()
    client = bench.connect(1)
    declare(client, "rejecting")
    declare(client, "short", max_length=1)
    declare(client, "none", max_length=0)
    declare(client, "brief", message_ttl=0)
    declare(client, "refusing", max_length=1, overflow="reject-publish")
    declare(client, "refusing.dlx", max_length=1, overflow="reject-publish-dlx")
    for queue in bench.vhost.queues:
        client.send(*(publish_bytes(1, "", queue, b"x") for _ in range(3)))
    for queue, died in (("rejecting", (1, 3, 7)), ("refusing", (2, 3, 7))):
        reject(client, queue)
        found = bench.metrics
        assert (found.dropped_rejected, found.dropped_expired, found.dropped_maxlen) == died
    declare(client, "empty")
    # Only the head is looked at: behind a live one a message waits, however old.
    for queue, died in (("rejecting", 3), ("empty", 4)):
        client.send(
            publish_bytes(1, "", queue, b"x", properties=spec.BasicProperties(expiration="0"))
        )
        assert bench.metrics.dropped_expired == died
    client.call(1, spec.Queue.Purge(queue="rejecting"), spec.Queue.Delete(queue="short"))
    assert bench.metrics.dropped_maxlen == 7


def test_a_cycle_without_a_reject_is_cut_and_told():
    bench = BrokerBench()
    client = bench.connect(1)
    declare(client, "a", max_length=0, dead_letter_exchange="", dead_letter_routing_key="b")
    declare(client, "b", max_length=0, dead_letter_exchange="", dead_letter_routing_key="a")
    client.send(publish_bytes(1, "", "a", b"x"))
    bench.run()
    assert bench.observer.named("dead_letter_cycle_cut") == [("/", "a")]
    assert {queue.ready_count for queue in bench.vhost.queues.values()} == {0}
    assert bench.metrics.dead_lettered_maxlen == 2


def test_a_reject_may_go_round_and_counts_up():
    bench = BrokerBench()
    client = bench.connect(1)
    declare(client, "again", dead_letter_exchange="", dead_letter_routing_key="again")
    client.send(publish_bytes(1, "", "again", b"x"))
    for _ in range(3):
        reject(client, "again")
    assert headers(client, "again")["x-death"][0]["count"] == 3


def test_through_a_headers_exchange():
    bench = BrokerBench()
    client = bench.connect(1)
    declare(client, "work", dead_letter_exchange="amq.headers")
    declare(client, "dead")
    client.call(
        1,
        spec.Queue.Bind(
            queue="dead", exchange="amq.headers", arguments={"x-first-death-queue": "work"}
        ),
        spec.Queue.Bind(
            queue="dead",
            exchange="amq.headers",
            arguments={"x-match": "any-with-x", "x-first-death-queue": "work"},
        ),
    )
    client.send(publish_bytes(1, "", "work", b"x"))
    reject(client, "work")
    assert bench.vhost.queues["dead"].ready_count == 1


@pytest.mark.slow
def test_a_long_chain_of_full_queues_passes_a_message_on_without_depth():
    bench = BrokerBench()
    client = bench.connect(1)
    count = 400
    for number in range(count):
        target = f"q{number + 1}"
        declare(
            client,
            f"q{number}",
            max_length=0,
            dead_letter_exchange="",
            dead_letter_routing_key=target,
        )
    declare(client, f"q{count}")
    client.send(publish_bytes(1, "", f"q{count - 100}", b"x"), publish_bytes(1, "", "q0", b"x"))
    target = bench.vhost.queues[f"q{count}"]
    assert target.ready_count == 2
    assert [len(headers(client, target.name)["x-death"]) for _ in range(2)] == [100, count]
    assert bench.observer.named("bug_found") == bench.observer.named("dead_letter_impossible") == []


@pytest.mark.parametrize(
    "given",
    [
        {f"h{number}": number for number in range(1010)},
        {"big": "x" * 130_800},
        {"big": "x" * 131_030},
    ],
)
def test_a_message_whose_header_is_full_arrives_with_what_fits(given: dict[str, Any]):
    bench = BrokerBench()
    client = bench.connect(1)
    declare(client, "dead")
    declare(client, "work", dead_letter_exchange="", dead_letter_routing_key="dead")
    client.send(publish_bytes(1, "", "work", b"x", properties=spec.BasicProperties(headers=given)))
    reject(client, "work")
    (message,) = bench.vhost.queues["dead"].levels[0].ram.messages
    assert message.frame_max <= 131_072
    found = headers(client, "dead")
    assert found.items() >= given.items()
    assert ("x-death" in found) is (len(given) > 1)
    assert (bench.metrics.dead_lettered_rejected, bench.metrics.dropped_rejected) == (1, 0)


@pytest.mark.parametrize("size", [10, 130_800, 131_030])
def test_a_cycle_is_cut_however_full_the_header_is(size: int):
    bench = BrokerBench()
    client = bench.connect(1)
    names = [f"q{number}" for number in range(9)]
    for name, following in zip(names, [*names[1:], names[0]], strict=True):
        declare(
            client, name, max_length=0, dead_letter_exchange="", dead_letter_routing_key=following
        )
    properties = spec.BasicProperties(headers={"big": "x" * size})
    client.send(publish_bytes(1, "", "q0", b"x", properties=properties))
    assert bench.observer.named("dead_letter_cycle_cut") == [("/", "q0")]
    assert bench.metrics.dead_lettered_maxlen == 9


def test_a_key_that_no_frame_holds_drops_the_message_and_counts_it_so():
    bench = BrokerBench()
    client = bench.connect(1)
    declare(client, "work", dead_letter_exchange="", dead_letter_routing_key="k" * 256)
    client.send(publish_bytes(1, "", "work", b"x"))
    reject(client, "work")
    assert (bench.metrics.dead_lettered_rejected, bench.metrics.dropped_rejected) == (0, 1)
    assert len(bench.observer.named("dead_letter_impossible")) == 1


def test_a_target_that_overflows_gives_up_its_oldest_in_order():
    bench = BrokerBench()
    client = bench.connect(1)
    declare(client, "first", max_length=0, dead_letter_exchange="", dead_letter_routing_key="next")
    declare(client, "next", max_length=1, dead_letter_exchange="", dead_letter_routing_key="last")
    declare(client, "last")
    client.send(*[publish_bytes(1, "", "first", b"%d" % number) for number in range(4)])
    found = client.call(1, spec.Basic.Consume(queue="last", no_ack=True))
    assert [method.body for _, method in found if hasattr(method, "body")] == [b"0", b"1", b"2"]


def test_what_is_rejected_after_the_end_of_its_queue_just_goes():
    bench = BrokerBench()
    client = bench.connect(1)
    declare(client, "dead")
    declare(client, "work", dead_letter_exchange="", dead_letter_routing_key="dead")
    client.send(publish_bytes(1, "", "work", b"x"))
    ((_, got),) = client.call(1, spec.Basic.Get(queue="work"))
    client.call(1, spec.Queue.Delete(queue="work"))
    client.call(1, spec.Basic.Reject(got.delivery_tag, requeue=False))
    assert bench.vhost.queues["dead"].ready_count == 0


def test_a_count_that_no_64_bits_hold_costs_no_message():
    bench = BrokerBench()
    client = bench.connect(1)
    declare(client, "dead")
    declare(client, "work", dead_letter_exchange="", dead_letter_routing_key="dead")
    entry = {
        "count": Long(2**63 - 1),
        "reason": "rejected",
        "queue": "work",
        "time": datetime(2026, 1, 1, tzinfo=UTC),
        "exchange": "",
        "routing-keys": ["work"],
    }
    odd = spec.BasicProperties(headers={"x-death": [entry]})
    client.send(
        publish_bytes(1, "", "work", b"0"),
        publish_bytes(1, "", "work", b"1", properties=odd),
        publish_bytes(1, "", "work", b"2"),
    )
    client.call(1, *[spec.Basic.Get(queue="work") for _ in range(3)])
    client.call(1, spec.Basic.Nack(3, multiple=True, requeue=False))
    assert (bench.vhost.queues["dead"].ready_count, bench.vhost.queues["work"].unacked_count) == (
        3,
        0,
    )
    assert bench.observer.named("bug_found") == []


def test_a_message_that_finds_a_bug_costs_itself_alone():
    bench = BrokerBench()
    client = bench.connect(1)
    declare(client, "first", dead_letter_exchange="", dead_letter_routing_key="next")
    declare(client, "next", max_length=0, dead_letter_exchange="", dead_letter_routing_key="last")
    declare(client, "last")
    client.send(publish_bytes(1, "", "last", b"x"))
    backlog = bench.vhost.queues["last"].levels[0]
    run = backlog.take(1, 1 << 20)
    assert run is not None
    (good,) = run.messages
    broken = Message(good.address, good.raw, -1, good.flags, 1, 0)  # no header has that size
    bench.vhost.queues["first"].dead_letters.send("rejected", [good, broken, good])
    assert bench.vhost.queues["last"].ready_count == 2
    assert [name for name, _ in bench.observer.named("bug_found")] == [
        "dead letters of '/' 'first'"
    ]


class ChokingLog(MemoryLog):
    """A log that fails at each message whose body is 2 or 5."""

    def append(
        self, first_seq: int, messages: Sequence[Message], expiries: Sequence[int] | None, size: int
    ) -> None:
        """Store a run, if it is another."""
        if any(body_of(each.raw) in (b"2", b"5") for each in messages):
            raise OSError("the store has a fault")
        super().append(first_seq, messages, expiries, size)


def declare_durable(bench: BrokerBench, client: Client, queue: str, log: type[MemoryLog]) -> None:
    bench.engine.logs[queue] = log(bench.engine)
    client.call(1, spec.Queue.Declare(queue=queue, durable=True))
    bench.commit()
    client.read()


PERSISTENT_MESSAGE = spec.BasicProperties(delivery_mode=2)


def fill(client: Client, queue: str, count: int) -> None:
    client.send(
        *(
            publish_bytes(1, "", queue, b"%d" % n, properties=PERSISTENT_MESSAGE)
            for n in range(count)
        )
    )


def bodies(client: Client, queue: str) -> list[bytes]:
    found = client.call(1, spec.Basic.Consume(queue=queue, no_ack=True))
    return [cast("Any", method).body for _, method in found if hasattr(method, "body")]


def test_a_queue_that_fails_at_one_dead_letter_costs_neither_the_others_nor_the_connection():
    bench = BrokerBench()
    client = bench.connect(1)
    declare_durable(bench, client, "dead", ChokingLog)
    declare(client, "work", dead_letter_exchange="", dead_letter_routing_key="dead")
    fill(client, "work", 10)
    client.call(1, *[spec.Basic.Get(queue="work") for _ in range(10)])
    assert client.call(1, spec.Basic.Nack(10, multiple=True, requeue=False)) == []
    work, dead = bench.vhost.queues["work"], bench.vhost.queues["dead"]
    assert (work.ready_count, work.unacked_count, work.unacked_bytes) == (0, 0, 0)
    assert (dead.ready_count, dead.persistent_count, dead.persistent_bytes) == (8, 8, 8)
    assert (bench.metrics.dead_lettered_rejected, bench.metrics.dropped_rejected) == (8, 2)
    assert len(bench.observer.named("bug_found")) == 2
    assert bodies(client, "dead") == [b"%d" % n for n in range(10) if n not in (2, 5)]
    assert dead.persistent_count == 0


def test_what_fails_in_one_queue_reaches_the_others_and_counts_as_dead_lettered():
    bench = BrokerBench()
    client = bench.connect(1)
    for queue, log in (("bad", ChokingLog), ("good", MemoryLog)):
        declare_durable(bench, client, queue, log)
        client.call(1, spec.Queue.Bind(queue=queue, exchange="amq.fanout"))
        bench.commit()
        client.read()
    declare(client, "work", max_length=1, dead_letter_exchange="amq.fanout")
    fill(client, "work", 7)
    found = {name: queue.ready_count for name, queue in bench.vhost.queues.items()}
    assert found == {"bad": 4, "good": 6, "work": 1}
    assert (bench.metrics.dead_lettered_maxlen, bench.metrics.dropped_maxlen) == (6, 0)


def test_what_a_target_took_before_it_failed_is_in_it_once_and_costs_nothing_behind_it():
    """A consumer takes the first, then the disk fails at the third and the sixth."""
    bench = BrokerBench()
    client = bench.connect(1, 2)
    declare_durable(bench, client, "dead", ChokingLog)
    declare(client, "work", dead_letter_exchange="", dead_letter_routing_key="dead")
    client.call(2, spec.Basic.Qos(prefetch_count=2))
    client.call(2, spec.Basic.Consume(queue="dead", consumer_tag="c"))
    fill(client, "work", 10)
    client.call(1, *[spec.Basic.Get(queue="work") for _ in range(10)])
    found = client.call(1, spec.Basic.Nack(10, multiple=True, requeue=False))
    assert [cast("Any", method).body for _, method in found] == [b"0", b"1"]
    dead = bench.vhost.queues["dead"]
    assert (dead.unacked_count, dead.ready_count, dead.persistent_count) == (2, 6, 8)
    assert (bench.metrics.dead_lettered_rejected, bench.metrics.dropped_rejected) == (8, 2)
    assert bodies(client, "dead") == [b"3", b"4", b"6", b"7", b"8", b"9"]


def test_a_fault_at_one_priority_costs_the_others_nothing():
    bench = BrokerBench()
    client = bench.connect(1)
    for level in ("", "-1", "-2"):
        bench.engine.logs[f"dead{level}"] = ChokingLog(bench.engine)
    client.call(1, spec.Queue.Declare(queue="dead", durable=True, arguments={"x-max-priority": 2}))
    bench.commit()
    client.read()
    declare(client, "work", dead_letter_exchange="", dead_letter_routing_key="dead")
    client.send(
        *(
            publish_bytes(
                1,
                "",
                "work",
                b"%d" % n,
                properties=BasicProperties(delivery_mode=2, priority=n % 3),
            )
            for n in range(10)
        )
    )
    client.call(1, *[spec.Basic.Get(queue="work") for _ in range(10)])
    client.call(1, spec.Basic.Nack(10, multiple=True, requeue=False))
    assert (bench.metrics.dead_lettered_rejected, bench.metrics.dropped_rejected) == (8, 2)
    assert bodies(client, "dead") == [b"8", b"1", b"4", b"7", b"0", b"3", b"6", b"9"]


def test_dead_letters_that_wait_for_others_survive_the_fault_of_one():
    """A chain: what `middle` gives up goes on after the batch that fills it."""
    bench = BrokerBench()
    client = bench.connect(1)
    declare_durable(bench, client, "last", ChokingLog)
    declare(client, "middle", max_length=0, dead_letter_exchange="", dead_letter_routing_key="last")
    declare(client, "work", dead_letter_exchange="", dead_letter_routing_key="middle")
    fill(client, "work", 7)
    client.call(1, *[spec.Basic.Get(queue="work") for _ in range(7)])
    client.call(1, spec.Basic.Nack(7, multiple=True, requeue=False))
    assert bodies(client, "last") == [b"0", b"1", b"3", b"4", b"6"]
    assert bench.vhost.queues["work"].unacked_count == 0
    assert (bench.metrics.dead_lettered_maxlen, bench.metrics.dropped_maxlen) == (5, 2)


@pytest.mark.parametrize(
    ("is_durable", "mode", "moves"), [(True, 2, 1), (True, 1, 0), (False, 2, 0)]
)
def test_a_copy_that_has_to_be_kept_comes_before_the_originals_ack(
    is_durable: bool, mode: int, moves: int
):
    bench = BrokerBench()
    client = bench.connect(1)
    declare(client, "work", dead_letter_exchange="", dead_letter_routing_key="dead")
    bench.queue("dead", durable=is_durable)
    client.send(publish_bytes(1, "", "work", b"x", properties=BasicProperties(delivery_mode=mode)))
    reject(client, "work")
    assert bench.engine.moves == moves


def test_a_dead_letter_may_be_a_direct_reply():
    bench = BrokerBench()
    client, server = bench.connect(1), bench.connect(1)
    client.call(1, spec.Basic.Consume(queue="amq.rabbitmq.reply-to", consumer_tag="r", no_ack=True))
    key = client.session.channels[1].reply_target.name
    declare(server, "work", dead_letter_exchange="", dead_letter_routing_key=key)
    server.send(publish_bytes(1, "", "work", b"1"), publish_bytes(1, "", "work", b"2"))
    server.call(1, spec.Basic.Get(queue="work"), spec.Basic.Get(queue="work"))
    server.call(1, spec.Basic.Nack(2, multiple=True, requeue=False))
    found = client.read()
    assert [(m.consumer_tag, m.body) for _, m in found] == [("r", b"1"), ("r", b"2")]
    assert (bench.metrics.dead_lettered_rejected, bench.metrics.dropped_rejected) == (2, 0)
