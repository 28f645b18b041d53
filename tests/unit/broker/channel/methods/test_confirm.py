"""confirm.select."""

from __future__ import annotations

import pytest
from pika import BasicProperties, spec

from burrowmq.broker.channel.channel import SETTLED_MAX
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.wire_client import method_bytes, publish_bytes


def test_sequence_numbers_begin_with_select_and_go_on_after_a_second_one():
    client = BrokerBench().connect(1)
    client.send(publish_bytes(1, "", "nobody", b""))
    assert client.names() == []
    client.call(1, spec.Confirm.Select())
    client.send(publish_bytes(1, "", "nobody", b""))
    assert client.call(1, spec.Confirm.Select(nowait=True))[0][1].delivery_tag == 1
    client.send(publish_bytes(1, "", "nobody", b""))
    assert [ack.delivery_tag for _, ack in client.read()] == [2]


def test_not_on_a_transactional_channel():
    client = BrokerBench().connect(1)
    client.call(1, spec.Tx.Select())
    ((_, close),) = client.call(1, spec.Confirm.Select())
    assert close.reply_text == "PRECONDITION_FAILED - cannot switch from tx to confirm mode"


PERSISTENT = BasicProperties(delivery_mode=2)


def publish(client: Client, queue: str) -> None:
    client.send(publish_bytes(1, "", queue, b"x", properties=PERSISTENT))


def with_two_got(bench: BrokerBench) -> tuple[Client, list[int]]:
    """A connection that has got a durable message of each of two queues, and what the store calls these."""
    client = bench.connect(1)
    queues = [bench.queue(name, durable=True) for name in "ab"]
    for queue in queues:
        publish(client, queue.name)
        client.call(1, spec.Basic.Get(queue=queue.name))
    return client, [queue.levels[0].log.queue_id for queue in queues]


def test_a_confirm_demands_what_its_connection_acked_before_once():
    bench = BrokerBench()
    client, ids = with_two_got(bench)
    client.call(1, spec.Confirm.Select())
    client.call(1, spec.Basic.Ack(1))
    publish(client, "a")
    publish(client, "a")
    assert bench.engine.acks_required == [{ids[0]}]
    other = bench.connect(1)
    other.call(1, spec.Confirm.Select())
    client.call(1, spec.Basic.Ack(2))
    publish(other, "a")
    client.send(publish_bytes(1, "", "a", b"x"))  # its confirm waits for nothing
    assert len(bench.engine.acks_required) == 1
    publish(client, "b")
    assert bench.engine.acks_required[1:] == [{ids[1]}]


def test_what_a_rejection_took_away_is_demanded_too():
    bench = BrokerBench()
    client, ids = with_two_got(bench)
    client.call(1, spec.Confirm.Select())
    client.call(1, spec.Basic.Nack(2, multiple=True, requeue=False))
    publish(client, "a")
    assert bench.engine.acks_required == [set(ids)]


@pytest.mark.parametrize(("covers", "mode"), [(False, 2), (True, 1)])
def test_nothing_is_demanded_where_nothing_is_to_be_kept(covers: bool, mode: int):
    bench = BrokerBench(confirms_cover_acks=covers)
    client = bench.connect(1)
    bench.queue("a", durable=True)
    client.send(
        publish_bytes(1, "", "a", b"x", properties=BasicProperties(delivery_mode=mode)),
    )
    client.call(1, spec.Basic.Get(queue="a"))
    client.call(1, spec.Confirm.Select())
    client.call(1, spec.Basic.Ack(1))
    publish(client, "a")
    assert bench.engine.acks_required == []


def test_a_connection_remembers_so_many_levels_and_no_more():
    bench = BrokerBench()
    client = bench.connect(1)
    client.call(1, spec.Confirm.Select())
    client.session.settled = set(range(1000, 1000 + SETTLED_MAX))
    bench.queue("a", durable=True)
    publish(client, "a")
    client.call(1, spec.Basic.Get(queue="a"))
    bench.engine.acks_required.clear()
    client.session.settled = set(range(1000, 1000 + SETTLED_MAX))
    client.call(1, spec.Basic.Ack(1))
    assert [len(ids) for ids in bench.engine.acks_required] == [SETTLED_MAX + 1]
    assert client.session.settled == set()


def end_refused(bench: BrokerBench, client: Client, queue_ids: list[int]) -> list[str]:
    """The commit in flight ends, and the disk has refused the acks of these queues; what the client gets."""
    epoch = bench.engine.in_flight
    assert epoch is not None
    client.session.note_refused(epoch, frozenset(), frozenset(queue_ids))
    bench.commit()
    return client.names()


def test_acks_that_the_disk_refused_are_due_with_the_next_confirm_until_a_nack_has_told():
    bench = BrokerBench()
    client, (source, _) = with_two_got(bench)
    client.call(1, spec.Confirm.Select())
    client.call(1, spec.Basic.Ack(1))
    client.session.demand_acks()  # with a commit for which no publish waits: a transaction's
    bench.engine.require_sync()
    bench.engine.hand_over()
    publish(client, "b")
    bench.engine.acks_required.clear()
    assert end_refused(bench, client, [source]) == []
    assert bench.engine.acks_required == [{source}], "the publish has come before this was known"
    bench.engine.hand_over()
    publish(client, "b")
    assert end_refused(bench, client, [source]) == ["Basic.Nack"]
    assert bench.engine.acks_required == [{source}] * 2, "the second one has, too"
    publish(client, "b")
    assert end_refused(bench, client, [source]) == ["Basic.Nack"]
    assert bench.engine.acks_required == [{source}] * 2, "the client knows"
    assert end_refused(bench, client, [source]) == ["Basic.Ack"]


def test_refused_acks_that_no_publish_waited_for_are_due_with_the_first_that_does():
    bench = BrokerBench()
    client, (source, _) = with_two_got(bench)
    client.call(1, spec.Confirm.Select())
    client.call(1, spec.Basic.Ack(1))
    client.session.demand_acks()
    for _ in range(3):
        bench.engine.require_sync()
        bench.engine.hand_over()
        assert end_refused(bench, client, [source]) == []
    publish(client, "b")
    bench.run()
    assert end_refused(bench, client, [source]) == ["Basic.Nack"]


def test_an_ack_behind_a_publish_that_is_nacked_for_earlier_acks_is_due_with_the_next_one():
    bench = BrokerBench()
    client, (source, other) = with_two_got(bench)
    publish(client, "a")
    client.call(1, spec.Basic.Get(queue="a"))
    client.call(1, spec.Confirm.Select())
    client.call(1, spec.Basic.Ack(1))
    publish(client, "b")
    bench.engine.hand_over()
    publish(client, "b")
    client.call(1, spec.Basic.Ack(3))
    client.call(1, spec.Basic.Ack(2))
    assert end_refused(bench, client, [source]) == ["Basic.Nack"]
    bench.engine.hand_over()
    assert end_refused(bench, client, [source]) == ["Basic.Nack"], "it came before this was known"
    publish(client, "b")
    assert bench.engine.acks_required == [{source}, {source}, {source, other}]
    bench.run()
    assert end_refused(bench, client, [source]) == ["Basic.Nack"], "no one has told of the last"


def test_a_nack_on_a_channel_that_has_failed_tells_nobody():
    bench = BrokerBench()
    client, (source, _) = with_two_got(bench)
    client.call(2, spec.Channel.Open())
    for number in (1, 2):
        client.call(number, spec.Confirm.Select())
    client.call(1, spec.Basic.Ack(1))
    publish(client, "b")
    bench.engine.hand_over()
    client.call(1, spec.Basic.Ack(99))  # and its close is not answered yet
    assert end_refused(bench, client, [source]) == []
    client.send(publish_bytes(2, "", "b", b"x", properties=PERSISTENT))
    bench.run()
    assert end_refused(bench, client, [source]) == ["Basic.Nack"]


def commit(bench: BrokerBench) -> None:
    """What was staged so far is durable."""
    bench.engine.require_sync()
    bench.engine.hand_over()
    bench.commit()


def test_what_goes_nowhere_since_a_queue_is_being_deleted_is_confirmed_with_the_deletion():
    """Were the deletion lost with the power, the queue would be there, and a message that was confirmed would not."""
    bench = BrokerBench()
    client, other = bench.connect(1), bench.connect(1)
    for name in ("a", "b"):
        bench.queue(name, durable=True)
    client.call(1, spec.Confirm.Select())
    commit(bench)
    publish(client, "nobody")
    assert client.names() == ["Basic.Ack"]
    other.send(method_bytes(1, spec.Queue.Delete(queue="a")))
    bench.engine.hand_over()
    publish(client, "a")
    assert client.names() == []
    publish(client, "b")
    bench.commit()
    assert (client.names(), other.names()) == (["Basic.Ack"], ["Queue.DeleteOk"])
    commit(bench)
    assert client.names() == ["Basic.Ack"]


def test_a_transaction_waits_for_what_its_routes_went_by():
    bench = BrokerBench()
    client, other = bench.connect(1), bench.connect(1)
    bench.queue("a", durable=True)
    client.call(1, spec.Tx.Select())
    commit(bench)
    publish(client, "a")
    other.send(method_bytes(1, spec.Queue.Delete(queue="a")))
    client.send(method_bytes(1, spec.Tx.Commit()))
    assert client.names() == []
    bench.commit()
    bench.commit()
    assert client.names() == ["Tx.CommitOk"]
