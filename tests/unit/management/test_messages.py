"""Messages of the HTTP API: published, got and settled as asked, shown, and the probe's."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from typing import Any, cast

import pytest
from pika import spec

from burrowmq.broker import inspect
from burrowmq.config.store import StoreConfig
from burrowmq.management import messages
from burrowmq.management.answers.reply import ApiError
from burrowmq.management.commands import parameters, topology
from burrowmq.protocol import properties as basic
from burrowmq.protocol.codec import join_address
from burrowmq.protocol.errors import AccessRefused, NotFound, PreconditionFailed
from burrowmq.storage.names import QueueNames
from tests.support.bench.broker import BrokerBench
from tests.support.bench.node import NodeBench
from tests.support.fake_ticket import AnswersLater
from tests.support.served import Served
from tests.support.wire_client import publish_bytes


def publish(
    bench: NodeBench, exchange: str, key: str, properties: dict[str, Any], body: bytes = b""
) -> bool:
    given = bench.node, "/", exchange, key, properties, body
    routed = bench.loop.run_until_complete(messages.publish(*given))
    bench.perform(bench.node.scheduler.touch)
    return routed


def get(bench: NodeBench, queue: str, count: int, ack_mode: str) -> list[tuple[Any, bool, int]]:
    """What is got, when turns have ended."""
    found = bench.loop.run_until_complete(messages.get(bench.node, "/", queue, count, ack_mode))
    bench.perform(bench.node.scheduler.touch)
    return found


def bodies(found: list[tuple[Any, bool, int]]) -> list[bytes]:
    return [basic.body(message.raw) for message, _, _ in found]


def fill(bench: NodeBench, *given: bytes, **arguments: Any) -> None:
    """A queue `q` with these messages."""
    bench.queue("q", arguments=arguments)
    for body in given:
        publish(bench, "", "q", {"delivery_mode": 2}, body)


# -- in ---------------------------------------------------------------------------------------------------------------


def test_what_the_disk_refuses_of_a_queue_is_not_said_to_be_in_it(tmp_path: Path) -> None:
    with NodeBench(tmp_path, store=StoreConfig(commit_log="off")) as bench:
        for name in ("q", "other"):
            bench.queue(name, durable=True)
            client = bench.connect(1)
            client.call(1, spec.Queue.Bind(queue=name, exchange="amq.fanout", routing_key=""))
        place = QueueNames("/", "q").directory
        bench.disk.fail("pwrite", errno.EIO, times=1 << 30, path_part=place)
        assert not publish(bench, "", "q", {"delivery_mode": 2})
        assert [fault.kind for fault in bench.node.queue_faults.of("/", "q")] == ["writing"]
        assert bench.node.metrics.messages_confirmed == 0
        assert publish(bench, "amq.fanout", "", {"delivery_mode": 2})
        assert publish(bench, "", "other", {"delivery_mode": 2})
        assert bench.node.metrics.messages_confirmed == 1
        bench.disk.heal()
        bench.perform(bench.node.engine.idle)
        assert publish(bench, "", "q", {"delivery_mode": 2})


def test_publishing_says_whether_a_queue_was_reached(bench: NodeBench) -> None:
    assert publish(bench, "", "lazy", {})
    assert not publish(bench, "", "nope", {})
    assert publish(bench, "amq.topic", "a b/c", {})
    assert not publish(bench, "amq.topic", "other", {})
    queues = bench.node.vhosts["/"].queues
    assert (queues["lazy"].ready_count, queues["orders"].ready_count) == (4, 4)


def test_a_queue_that_refuses_was_not_reached(bench: NodeBench) -> None:
    fill(bench, b"1", **{"x-max-length": 1, "x-overflow": "reject-publish"})
    assert not publish(bench, "", "q", {}, b"2")
    assert bodies(get(bench, "q", 9, "ack_requeue_false")) == [b"1"]


@pytest.mark.parametrize("is_full", [True, False])
def test_what_a_queue_elsewhere_says_is_waited_for(
    bench: NodeBench, monkeypatch: pytest.MonkeyPatch, is_full: bool
) -> None:
    elsewhere = AnswersLater(is_full=is_full)
    queue = bench.node.vhosts["/"].queues["lazy"]
    monkeypatch.setattr(type(queue), "publish", lambda _, *given: elsewhere.publish(*given))
    before = bench.node.metrics.messages_confirmed
    assert publish(bench, "", "lazy", {}) is not is_full
    (ticket,) = elsewhere.tickets
    assert ticket.is_done
    assert bench.node.metrics.messages_confirmed - before == (not is_full)


def test_what_the_disk_refuses_is_known_though_a_queue_elsewhere_answers_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with NodeBench(tmp_path, store=StoreConfig(commit_log="off")) as bench:
        for name in ("bad", "far"):
            bench.queue(name, durable=True)
            bench.perform(
                lambda each=name: topology.bind(
                    bench.node, "/", "amq.fanout", ("queue", each), "", {}
                )
            )
        elsewhere, bad = AnswersLater(is_full=True), bench.node.vhosts["/"].queues["bad"]
        here = type(bad).publish

        def publish_somewhere(queue: object, *given: Any) -> Any:
            bench.node.scheduler.touch()  # others have something to commit, too
            return here(queue, *given) if queue is bad else elsewhere.publish(*given)

        monkeypatch.setattr(type(bad), "publish", publish_somewhere)
        place = QueueNames("/", "bad", 0).directory
        bench.disk.fail("pwrite", errno.EIO, times=1 << 30, path_part=place)
        assert not publish(bench, "amq.fanout", "", {"delivery_mode": 2})
        (ticket,) = elsewhere.tickets
        assert ticket.is_done


def test_a_virtual_host_may_go_while_a_queue_elsewhere_is_waited_for(
    bench: NodeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere, vhosts = AnswersLater(is_full=False), bench.node.vhosts
    owner = vhosts["/"]
    monkeypatch.setattr(
        type(owner.queues["lazy"]), "publish", lambda _, *given: elsewhere.publish(*given)
    )
    given = bench.node, "/", "", "lazy", {}, b""
    publishing = bench.loop.create_task(messages.publish(*given))
    bench.loop.call_soon(vhosts.pop, "/")
    routed = bench.loop.run_until_complete(publishing)
    vhosts["/"] = owner
    assert routed


def test_one_queue_of_two_is_enough(bench: NodeBench) -> None:
    fill(bench, b"1", **{"x-max-length": 1, "x-overflow": "reject-publish"})
    for name in ("q", "lazy"):
        bench.perform(
            lambda each=name: topology.bind(bench.node, "/", "amq.fanout", ("queue", each), "", {})
        )
    assert publish(bench, "amq.fanout", "", {}, b"2")
    assert bench.node.vhosts["/"].queues["lazy"].ready_count == 4


def test_headers_route_as_over_amqp(bench: NodeBench) -> None:
    arguments = {"x-match": "all", "colour": "red"}
    bench.perform(
        lambda: topology.bind(bench.node, "/", "amq.headers", ("queue", "lazy"), "", arguments)
    )
    assert publish(bench, "amq.headers", "", {"headers": {"colour": "red"}})
    assert not publish(bench, "amq.headers", "", {"headers": {"colour": "blue"}})
    assert not publish(bench, "amq.headers", "", {})


def test_copies_go_by_cc_and_bcc(bench: NodeBench) -> None:
    for name in ("cc", "bcc"):
        bench.queue(name)
    assert publish(bench, "", "nope", {"headers": {"CC": ["cc"], "BCC": ["bcc"]}})
    for name in ("cc", "bcc"):
        ((message, _, _),) = get(bench, name, 1, "ack_requeue_false")
        assert basic.decode(message.raw).headers == {"CC": ["cc"]}
    with pytest.raises(PreconditionFailed, match='unacceptable_type_in_header,"CC",longstr'):
        publish(bench, "", "lazy", {"headers": {"CC": "cc"}})


def test_nobody_waits_for_a_direct_reply(bench: NodeBench) -> None:
    with pytest.raises(PreconditionFailed, match="fast reply consumer does not exist"):
        publish(bench, "", "lazy", {"reply_to": "amq.rabbitmq.reply-to"})
    assert publish(bench, "", "lazy", {"reply_to": "amq.rabbitmq.reply-to.x"})


def test_an_exchange_refuses_as_over_amqp(bench: NodeBench) -> None:
    bench.perform(
        lambda: topology.declare_exchange(bench.node, "/", "in", "direct", (True, False, True), {})
    )
    with pytest.raises(NotFound, match="no exchange 'nope' in vhost '/'"):
        publish(bench, "nope", "", {})
    with pytest.raises(
        AccessRefused, match="cannot publish to internal exchange 'in' in vhost '/'"
    ):
        publish(bench, "in", "", {})


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"priority": "high"}, ["not_int", "priority"]),
        ({"timestamp": True}, ["not_int", "timestamp"]),
        ({"delivery_mode": 1.5}, ["not_int", "delivery_mode"]),
        ({"headers": [1]}, "headers must be an object"),
        ({"headers": {"n": None}}, "null_not_allowed"),
        ({"headers": {"l": [1, {"n": None}]}}, "null_not_allowed"),
        ({"content_type": None}, ["not_string", "content_type"]),
        ({"message_id": {}}, ["not_string", "message_id"]),
        ({"expiration": 1000}, ["not_string", "expiration"]),
        ({"priority": 256}, "priority must be between 0 and 255"),
        ({"user_id": "ü" * 128}, "user_id is longer than 255 bytes"),
        ({"type": "\ud800" * 128}, "type is longer than 255 bytes"),
    ],
)
def test_properties_that_are_refused(
    bench: NodeBench, given: dict[str, object], reason: object
) -> None:
    with pytest.raises(ApiError) as refused:
        publish(bench, "", "lazy", given)
    assert (refused.value.status, refused.value.reason) == (400, reason)
    assert bench.node.vhosts["/"].queues["lazy"].ready_count == 3


def test_properties_that_rabbitmq_passes_over(bench: NodeBench) -> None:
    """Names that are no property's, whatever they are for, and the empty list that PHP has for an empty object."""
    fill(bench)
    publish(bench, "", "q", {"nosuch": None, "contentType": 1, "type": "t", "headers": []})
    ((message, _, _),) = get(bench, "q", 1, "ack_requeue_false")
    row = messages.row((message, False, 0), "auto", None)
    assert row["properties"] == {"type": "t", "headers": {}}


# -- out --------------------------------------------------------------------------------------------------------------


def test_what_is_got_and_acknowledged_is_gone(bench: NodeBench) -> None:
    fill(bench, b"1", b"2", b"3")
    found = get(bench, "q", 2, "ack_requeue_false")
    assert bodies(found) == [b"1", b"2"]
    assert [(is_redelivered, left) for _, is_redelivered, left in found] == [(False, 2), (False, 1)]
    queue = bench.node.vhosts["/"].queues["q"]
    assert (queue.ready_count, queue.unacked_count) == (1, 0)


def test_only_clients_acks_are_counted(bench: NodeBench) -> None:
    fill(bench, b"1")
    get(bench, "q", 1, "ack_requeue_false")
    row = inspect.queue(bench.node, "/", "q")
    assert row is not None
    assert (row["message_stats"]["publish"], row["message_stats"]["ack"]) == (1, 0)


@pytest.mark.parametrize("ack_mode", ["ack_requeue_true", "reject_requeue_true"])
def test_what_is_given_back_is_in_its_place_and_redelivered(
    bench: NodeBench, ack_mode: str
) -> None:
    fill(bench, b"1", b"2", b"3")
    get(bench, "q", 2, ack_mode)
    queue = bench.node.vhosts["/"].queues["q"]
    assert (queue.ready_count, queue.unacked_count) == (3, 0)
    found = get(bench, "q", 9, "ack_requeue_false")
    assert bodies(found) == [b"1", b"2", b"3"]
    assert [is_redelivered for _, is_redelivered, _ in found] == [True, True, False]


def test_what_is_rejected_is_dead_lettered(bench: NodeBench) -> None:
    fill(
        bench,
        b"1",
        **{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
    )
    bench.queue("dead")
    get(bench, "q", 1, "reject_requeue_false")
    ((message, _, _),) = get(bench, "dead", 9, "ack_requeue_false")
    assert basic.decode(message.raw).headers["x-first-death-reason"] == "rejected"
    assert bench.node.vhosts["/"].queues["q"].ready_count == 0


def test_messages_on_disk_are_waited_for(bench: NodeBench) -> None:
    assert bodies(get(bench, "lazy", 9, "ack_requeue_false")) == [bytes(1000)] * 3


def test_a_message_that_comes_too_late_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    core = BrokerBench(answers_later=True)
    queue = core.queue("q", durable=True, arguments={"x-queue-mode": "lazy"})
    core.connect(1).send(publish_bytes(1, "", "q", b"1"))
    monkeypatch.setattr(messages, "GET_TIMEOUT_S", 0)
    with pytest.raises(ApiError, match="503 timeout: the queue is loading"):
        asyncio.run(messages.get(cast("Any", core), "/", "q", 1, "ack_requeue_false"))
    assert (queue.ready_count, queue.unacked_count) == (1, 0)
    core.perform(core.engine.answer_reads)
    assert (queue.ready_count, queue.unacked_count) == (1, 0)
    ((message, is_redelivered, _),) = asyncio.run(
        messages.get(cast("Any", core), "/", "q", 1, "ack_requeue_false")
    )
    assert (basic.body(message.raw), is_redelivered) == (b"1", True)


def test_an_empty_queue_gives_nothing(bench: NodeBench) -> None:
    fill(bench)
    assert get(bench, "q", 5, "ack_requeue_false") == []


def test_a_queue_that_is_not_there_or_anothers_is_refused(bench: NodeBench) -> None:
    bench.connect(1).call(1, spec.Queue.Declare(queue="mine", exclusive=True))
    with pytest.raises(ApiError, match="404"):
        get(bench, "nope", 1, "ack_requeue_false")
    with pytest.raises(ApiError, match=r"405 RESOURCE_LOCKED - .*locked queue 'mine'"):
        get(bench, "mine", 1, "ack_requeue_false")


# -- shown ------------------------------------------------------------------------------------------------------------


def test_a_row_has_payload_and_properties(bench: NodeBench) -> None:
    bench.queue("q")
    given = {"delivery_mode": "2", "headers": {"a": 1}, "type": "t"}
    publish(bench, "", "q", given, b"caf\xc3\xa9")
    (found,) = get(bench, "q", 1, "ack_requeue_true")
    assert messages.row(found, "auto", None) == {
        "payload_bytes": 5,
        "redelivered": False,
        "exchange": "",
        "routing_key": "q",
        "message_count": 0,
        "properties": {"headers": {"a": 1}, "delivery_mode": 2, "type": "t"},
        "payload": "café",
        "payload_encoding": "string",
    }


@pytest.mark.parametrize(
    ("body", "encoding", "truncate", "expected"),
    [
        (b"\xff\xfe", "auto", 1, ("/w==", "base64", 2)),
        (b"text", "base64", None, ("dGV4dA==", "base64", 4)),
        (b"text", "auto", 2, ("te", "string", 4)),
        (b"text", "auto", -1, ("", "string", 4)),
    ],
)
def test_a_payload_is_text_or_base64_and_may_be_cut(
    body: bytes, encoding: str, truncate: int | None, expected: tuple[str, str, int]
) -> None:
    message = basic.build(join_address(b"ex", b"key"), basic.Properties(), body)
    row = messages.row((message, True, 7), encoding, truncate)
    assert (row["payload"], row["payload_encoding"], row["payload_bytes"]) == expected
    assert (row["exchange"], row["routing_key"], row["properties"]) == ("ex", "key", [])


# -- the probe --------------------------------------------------------------------------------------------------------


def test_octets_that_are_no_text_can_be_had_back(bench: NodeBench) -> None:
    fill(bench)
    given = {"correlation_id": "c\udcff", "headers": {"id": b"\xff\xfe", "t": "\u00e9"}}
    message = basic.build(join_address(b"", b"q"), basic.Properties(**given), b"")
    assert messages.row((message, False, 0), "auto", None)["properties"] == {
        "correlation_id": "Not UTF-8, base64 is: Y/8=",
        "headers": {"id": "Not UTF-8, base64 is: //4=", "t": "\u00e9"},
    }


def test_the_probe_leaves_its_queue_empty(bench: NodeBench) -> None:
    for _ in range(2):
        bench.loop.run_until_complete(messages.probe(bench.node, "/"))
    queue = bench.node.vhosts["/"].queues[messages.PROBE]
    assert (queue.ready_count, queue.unacked_count, queue.durable) == (0, 0, False)


def test_the_probe_fails_when_its_message_does_not_come_back(bench: NodeBench) -> None:
    policy = {"pattern": f"^{messages.PROBE}$", "definition": {"max-length": 0}}
    bench.perform(lambda: parameters.put_policy(bench.node, "/", "none", policy, is_operator=False))
    with pytest.raises(ApiError, match="503 failed: the test message did not come back"):
        bench.loop.run_until_complete(messages.probe(bench.node, "/"))


def test_what_does_not_fit_its_type_is_refused(served: Served) -> None:
    path = "/api/exchanges/%2F/amq.topic/publish"
    body = {"properties": {}, "routing_key": "k", "payload": "", "payload_encoding": "string"}
    for change in (
        {"routing_key": "k" * 256},
        {"properties": {"user_id": "u" * 256}},
        {"properties": {"priority": 256}},
        {"properties": {"timestamp": 2**70}},
        {"properties": {"headers": {"k" * 256: 1}}},
    ):
        assert served.api("POST", path, body | change).status == 400, change
    assert served.api("POST", path, body | {"routing_key": "k" * 255}).status == 200


# -- counted ----------------------------------------------------------------------------------------------------------


def test_what_goes_through_the_api_is_counted_as_over_a_channel_of_its_own(
    tmp_path: Path,
) -> None:
    with NodeBench(tmp_path) as bench:
        client, node = bench.connect(1), bench.node
        client.call(1, spec.Queue.Declare(queue="q"))
        client.call(1, spec.Queue.Bind(queue="q", exchange="amq.topic", routing_key="k"))
        for key in ("k", "k", "k", "k", "none"):
            publish(bench, "amq.topic", key, {})
        exchange = node.vhosts["/"].exchanges["amq.topic"]
        assert (exchange.publish_in, exchange.publish_out) == (5, 4)
        for mode in ("ack_requeue_true", "ack_requeue_false", "reject_requeue_false"):
            get(bench, "q", 1, mode)
        get(bench, "q", 9, "ack_requeue_false")
        counted = inspect.vhost_counters(node.vhosts["/"], [])["message_stats"]
        expected = {
            "publish": 5, "confirm": 5, "return_unroutable": 1, "get": 2, "get_no_ack": 3, "get_empty": 1,
            "redeliver": 1, "deliver_get": 5,
        }  # fmt: skip
        assert {name: value for name, value in counted.items() if value} == expected
        row = inspect.queue(node, "/", "q")
        assert row is not None
        stats = row["message_stats"]
        assert (stats["publish"], stats["get"], stats["get_no_ack"]) == (4, 2, 3)
        totals = inspect.counters(node)
        names = ("messages_received", "messages_confirmed", "messages_routed", "messages_delivered",
                 "messages_get_empty", "messages_unroutable_returned")  # fmt: skip
        assert [totals[name] for name in names] == [5, 5, 4, 5, 1, 1]


def test_what_a_queue_refuses_is_not_confirmed(bench: NodeBench) -> None:
    bench.queue("q", arguments={"x-max-length": 0, "x-overflow": "reject-publish"})
    before = inspect.counters(bench.node)["messages_confirmed"]
    publish(bench, "", "q", {})
    assert inspect.counters(bench.node)["messages_confirmed"] == before


def test_what_is_rejected_becomes_dead_letters_in_order(tmp_path: Path) -> None:
    with NodeBench(tmp_path) as bench:
        letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        bench.queue("dead")
        fill(bench, b"1", b"2", b"3", **letters)
        assert bodies(get(bench, "q", 3, "reject_requeue_false")) == [b"1", b"2", b"3"]
        assert bodies(get(bench, "dead", 3, "ack_requeue_true")) == [b"1", b"2", b"3"]
        assert bodies(get(bench, "dead", 3, "ack_requeue_false")) == [b"1", b"2", b"3"]
