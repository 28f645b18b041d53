"""The queue length limit guide, one test per promise that it makes about arguments.

Source: RabbitMQ's "Queue Length Limit" guide; what it says about policies is tested elsewhere.
Each test is named after the sentence that it checks.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import NackError

from tests.support.black_box import (
    channel_error,
    eventually,
    get_all,
    get_one,
    publish,
    queue_of,
    wait_ready,
)
from tests.support.broker_process import Target

REJECTING = ["reject-publish", "reject-publish-dlx"]


def confirmed(channel: BlockingChannel, queue: str, body: bytes, exchange: str = "") -> bool:
    """Publish on a confirming channel; False when the broker nacked."""
    try:
        channel.basic_publish(exchange, queue, body)
    except NackError:
        return False
    return True


def test_maximum_length_can_be_a_number_of_messages(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_length=3)
    publish(channel, queue, b"1", b"2", b"3", b"4", b"5")
    assert get_all(channel, queue) == [b"3", b"4", b"5"]


def test_maximum_length_can_be_a_number_of_bytes(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_length_bytes=10)
    publish(channel, queue, b"aaaa", b"bbbb", b"cccc")
    assert get_all(channel, queue) == [b"bbbb", b"cccc"]


def test_bytes_are_the_total_of_all_body_lengths_ignoring_properties_and_overheads(
    channel: BlockingChannel,
) -> None:
    queue = queue_of(channel, x_max_length_bytes=6)
    for body in (b"aa", b"bb", b"cc"):
        publish(channel, queue, body, headers={"padding": "x" * 500}, correlation_id="y" * 200)
    wait_ready(channel, queue, 3)
    publish(channel, queue, b"d")
    assert get_all(channel, queue) == [b"bb", b"cc", b"d"]


def test_empty_bodies_never_reach_a_byte_limit(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_length_bytes=1)
    publish(channel, queue, *[b""] * 20, b"z")
    wait_ready(channel, queue, 21)


def test_both_limits_whichever_is_hit_first_messages(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_length=2, x_max_length_bytes=1000)
    publish(channel, queue, b"1", b"2", b"3")
    assert get_all(channel, queue) == [b"2", b"3"]


def test_both_limits_whichever_is_hit_first_bytes(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_length=100, x_max_length_bytes=5)
    publish(channel, queue, b"aaa", b"bbb")
    assert get_all(channel, queue) == [b"bbb"]


def test_a_message_bigger_than_the_byte_limit_evicts_everything_with_itself(
    channel: BlockingChannel,
) -> None:
    queue = queue_of(channel, x_max_length_bytes=5)
    publish(channel, queue, b"aa", b"bb", b"123456")
    assert get_all(channel, queue) == []


def test_ready_messages_only_count_unacknowledged_do_not(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_length=2)
    publish(channel, queue, b"1", b"2")
    held = [channel.basic_get(queue)[0].delivery_tag for _ in range(2)]
    publish(channel, queue, b"3", b"4")
    wait_ready(channel, queue, 2)
    publish(channel, queue, b"5")
    channel.basic_ack(held[-1], multiple=True)
    assert get_all(channel, queue) == [b"4", b"5"]


def test_ready_bytes_only_count_unacknowledged_do_not(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_length_bytes=4)
    publish(channel, queue, b"aaaa")
    tag = channel.basic_get(queue)[0].delivery_tag
    publish(channel, queue, b"bb", b"cc")
    wait_ready(channel, queue, 2)
    channel.basic_ack(tag)


def test_ready_messages_only_count_with_reject_publish(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_length=1, x_overflow="reject-publish")
    channel.confirm_delivery()
    assert confirmed(channel, queue, b"1")
    assert not confirmed(channel, queue, b"2")
    channel.basic_get(queue)
    assert confirmed(channel, queue, b"3")
    assert not confirmed(channel, queue, b"4")


def test_default_drops_from_the_front_the_oldest(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_length=2)
    publish(channel, queue, *[b"%d" % number for number in range(100)])
    assert get_all(channel, queue) == [b"98", b"99"]


def test_default_overflow_is_drop_head_and_confirms_are_acks(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_length=1)
    channel.confirm_delivery()
    assert all(confirmed(channel, queue, b"%d" % number) for number in range(5))
    assert get_all(channel, queue) == [b"4"]


def test_drop_head_spelled_out_equals_the_default(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_length=2, x_overflow="drop-head")
    publish(channel, queue, b"1", b"2", b"3")
    assert get_all(channel, queue) == [b"2", b"3"]


def test_default_dead_letters_from_the_front(channel: BlockingChannel) -> None:
    graveyard = queue_of(channel)
    queue = queue_of(
        channel,
        x_max_length=2,
        x_dead_letter_exchange="",
        x_dead_letter_routing_key=graveyard,
    )
    publish(channel, queue, b"1", b"2", b"3", b"4")
    _, properties, body = get_one(channel, graveyard)
    assert body == b"1"
    death = properties.headers["x-death"][0]
    assert (death["reason"], death["queue"], death["count"]) == ("maxlen", queue, 1)
    assert get_one(channel, graveyard)[2] == b"2"
    assert get_all(channel, queue) == [b"3", b"4"]


def test_drop_head_by_bytes_dead_letters_as_many_as_needed(channel: BlockingChannel) -> None:
    graveyard = queue_of(channel)
    queue = queue_of(
        channel,
        x_max_length_bytes=10,
        x_dead_letter_exchange="",
        x_dead_letter_routing_key=graveyard,
    )
    publish(channel, queue, b"aa", b"bb", b"cc", b"dddddddd")
    wait_ready(channel, graveyard, 2)
    assert get_all(channel, graveyard) == [b"aa", b"bb"]
    assert get_all(channel, queue) == [b"cc", b"dddddddd"]


@pytest.mark.parametrize("overflow", REJECTING)
def test_reject_publish_discards_the_most_recently_published(
    channel: BlockingChannel, overflow: str
) -> None:
    queue = queue_of(channel, x_max_length=2, x_overflow=overflow)
    publish(channel, queue, b"1", b"2", b"3", b"4")
    assert get_all(channel, queue) == [b"1", b"2"]


@pytest.mark.parametrize("overflow", REJECTING)
def test_reject_publish_by_bytes_discards_the_most_recently_published(
    channel: BlockingChannel, overflow: str
) -> None:
    queue = queue_of(channel, x_max_length_bytes=5, x_overflow=overflow)
    publish(channel, queue, b"aaa", b"bbb", b"cc", b"d")
    assert get_all(channel, queue) == [b"aaa", b"cc"]


@pytest.mark.parametrize("overflow", REJECTING)
def test_publisher_is_informed_of_the_reject_by_basic_nack(
    channel: BlockingChannel, overflow: str
) -> None:
    queue = queue_of(channel, x_max_length=1, x_overflow=overflow)
    channel.confirm_delivery()
    assert confirmed(channel, queue, b"1")
    assert not confirmed(channel, queue, b"2")
    assert not confirmed(channel, queue, b"3")
    assert get_all(channel, queue) == [b"1"]
    assert confirmed(channel, queue, b"4")


@pytest.mark.parametrize("overflow", REJECTING)
def test_multiple_queues_one_rejects_publisher_gets_nack_and_the_others_still_store(
    channel: BlockingChannel, exchange: Callable[..., str], overflow: str
) -> None:
    full = queue_of(channel, x_max_length=1, x_overflow=overflow)
    roomy = [queue_of(channel), queue_of(channel)]
    fanout = exchange("fanout")
    for queue in [full, *roomy]:
        channel.queue_bind(queue, fanout)
    channel.confirm_delivery()
    assert confirmed(channel, "", b"1", fanout)
    assert not confirmed(channel, "", b"2", fanout)
    for queue in roomy:
        wait_ready(channel, queue, 2)
        assert get_all(channel, queue) == [b"1", b"2"]
    assert get_all(channel, full) == [b"1"]


def test_reject_publish_dlx_also_dead_letters_rejected_messages(channel: BlockingChannel) -> None:
    graveyard = queue_of(channel)
    queue = queue_of(
        channel,
        x_max_length=1,
        x_overflow="reject-publish-dlx",
        x_dead_letter_exchange="",
        x_dead_letter_routing_key=graveyard,
    )
    channel.confirm_delivery()
    assert confirmed(channel, queue, b"1")
    assert not confirmed(channel, queue, b"2")
    _, properties, body = get_one(channel, graveyard)
    assert body == b"2"
    assert properties.headers["x-death"][0]["reason"] == "maxlen"
    assert properties.headers["x-first-death-reason"] == "maxlen"


def test_reject_publish_does_not_dead_letter(channel: BlockingChannel) -> None:
    graveyard = queue_of(channel)
    queue = queue_of(
        channel,
        x_max_length=1,
        x_overflow="reject-publish",
        x_dead_letter_exchange="",
        x_dead_letter_routing_key=graveyard,
    )
    channel.confirm_delivery()
    assert confirmed(channel, queue, b"1")
    assert not confirmed(channel, queue, b"2")
    assert get_all(channel, graveyard) == []


def test_the_limit_is_a_non_negative_integer(connect: Callable[..., Any], name: str) -> None:
    for key in ("x-max-length", "x-max-length-bytes"):
        for value, reason in (
            (-1, "{value_negative,-1}"),
            ("10", '"expected integer, got longstr"'),
            (True, '"expected integer, got bool"'),
        ):
            text = f"invalid arg '{key}' for queue '{name}' in vhost '/': {reason}"
            with channel_error(406, text):
                connect().channel().queue_declare(name, exclusive=True, arguments={key: value})


def test_a_limit_of_zero_drops_what_nobody_takes_at_once(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_length=0)
    channel.confirm_delivery()
    assert confirmed(channel, queue, b"dropped")
    assert get_all(channel, queue) == []
    taken: list[bytes] = []
    channel.basic_consume(queue, lambda _c, _m, _p, body: taken.append(body), auto_ack=True)
    channel.basic_publish("", queue, b"taken")
    eventually(lambda: channel.connection.process_data_events(0.01) or taken)
    assert taken == [b"taken"]


@pytest.mark.parametrize("overflow", REJECTING)
def test_a_limit_of_zero_with_reject_publish_rejects_even_with_an_idle_consumer(
    channel: BlockingChannel, overflow: str
) -> None:
    queue = queue_of(channel, x_max_length=0, x_overflow=overflow)
    channel.basic_consume(queue, lambda *_: None, auto_ack=True)
    channel.confirm_delivery()
    assert not confirmed(channel, queue, b"1")


def test_overflow_has_three_possible_values(connect: Callable[..., Any], name: str) -> None:
    for value in ("drop-head", "reject-publish", "reject-publish-dlx"):
        queue_of(connect().channel(), f"{name}.{value}", x_overflow=value)
    text = f"invalid arg 'x-overflow' for queue '{name}' in vhost '/': invalid_overflow"
    with channel_error(406, text):
        queue_of(connect().channel(), name, x_overflow="reject")


def test_requeued_messages_count_again_and_the_head_is_dropped(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_length=2)
    publish(channel, queue, b"a", b"b", b"c")
    publish(channel, queue, b"d")
    tag = channel.basic_get(queue)[0].delivery_tag  # c
    publish(channel, queue, b"e")
    channel.basic_nack(tag, requeue=True)
    assert get_all(channel, queue) == [b"d", b"e"]


def test_requeue_is_accepted_above_a_rejecting_limit(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_length=1, x_overflow="reject-publish")
    publish(channel, queue, b"1")
    tag = channel.basic_get(queue)[0].delivery_tag
    publish(channel, queue, b"2")
    channel.basic_nack(tag, requeue=True)
    assert get_all(channel, queue) == [b"1", b"2"]


def test_a_message_handed_to_a_waiting_consumer_takes_no_room(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_length=1)
    taken: list[bytes] = []
    channel.basic_consume(queue, lambda _c, _m, _p, body: taken.append(body))
    publish(channel, queue, b"1", b"2", b"3")
    eventually(lambda: channel.connection.process_data_events(0.01) or len(taken) == 3)
    assert taken == [b"1", b"2", b"3"]


def test_inspect_arguments_and_ready_figures_with_list_queues(
    broker: Target, channel: BlockingChannel, name: str
) -> None:
    queue_of(channel, name, x_max_length=3, x_overflow="drop-head")
    publish(channel, name, b"12345", b"6789", b"0", b"ab")
    tag = channel.basic_get(name)[0].delivery_tag
    wait_ready(channel, name, 2)

    def row() -> list[Any]:
        text = broker.ctl(
            "list_queues",
            "name",
            "durable",
            "arguments",
            "policy",
            "messages_ready",
            "message_bytes_ready",
            "--formatter",
            "json",
            "--silent",
        )
        return [one for one in json.loads(text) if one["name"] == name]

    (found,) = eventually(lambda: [one for one in row() if one["messages_ready"] == 2])
    assert found["message_bytes_ready"] == 3
    assert found["policy"] in ("", None)
    assert found["durable"] is False
    assert sorted(str(one) for one in found["arguments"]) == sorted(
        str(one)
        for one in (["x-max-length", "signedint", 3], ["x-overflow", "longstr", "drop-head"])
    ) or found["arguments"] == {"x-max-length": 3, "x-overflow": "drop-head"}
    table = broker.ctl(
        "list_queues",
        "name",
        "durable",
        "arguments",
        "policy",
        "--formatter=pretty_table",
        "--silent",
    )
    # 3.10 draws its frame with VT100 line characters unless it is on a UTF-8 terminal.
    assert table.splitlines()[0].startswith("\x1b(0l" if broker.is_rabbitmq_3_10 else "┌")
    assert any(name in line and "x-max-length" in line for line in table.splitlines())
    channel.basic_ack(tag)


def test_the_guides_own_example_ten_messages(channel: BlockingChannel, name: str) -> None:
    channel.queue_declare(name, arguments={"x-max-length": 10})
    try:
        publish(channel, name, *[b"%d" % number for number in range(11)])
        assert get_all(channel, name) == [b"%d" % number for number in range(1, 11)]
    finally:
        channel.queue_delete(name)


def test_limits_hold_for_persistent_messages_in_durable_queues(
    channel: BlockingChannel, name: str
) -> None:
    channel.queue_declare(name, durable=True, arguments={"x-max-length": 2})
    try:
        channel.confirm_delivery()
        for number in range(5):
            channel.basic_publish("", name, b"%d" % number, pika.BasicProperties(delivery_mode=2))
        assert get_all(channel, name) == [b"3", b"4"]
    finally:
        channel.queue_delete(name)
