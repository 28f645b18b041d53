"""TTL, dead-lettering with x-death, cycles, and priority queues.

Source: RabbitMQ's dead letter, queue and priority queue modules; 3.13 differences are marked.
"""

from __future__ import annotations

import time
from typing import Any

import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.support.black_box import (
    eventually,
    get_all,
    get_one,
    publish,
    queue_of,
    ready,
    wait_ready,
)
from tests.support.broker_process import Target


def mortal(channel: BlockingChannel, **arguments: Any) -> tuple[str, str]:
    """Return (queue, graveyard): what dies in the first comes to the second."""
    graveyard = queue_of(channel)
    queue = queue_of(
        channel, x_dead_letter_exchange="", x_dead_letter_routing_key=graveyard, **arguments
    )
    return queue, graveyard


def test_queue_ttl_expires_messages(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_message_ttl=100)
    publish(channel, queue, b"1", b"2")
    wait_ready(channel, queue, 2)
    wait_ready(channel, queue, 0)


def test_the_smaller_ttl_wins(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_message_ttl=60000)
    publish(channel, queue, b"1", expiration="50")
    wait_ready(channel, queue, 0)
    short = queue_of(channel, x_message_ttl=50)
    publish(channel, short, b"1", expiration="60000")
    wait_ready(channel, short, 0)


def test_messages_expire_at_the_head_only(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    publish(channel, queue, b"long")
    publish(channel, queue, b"short", expiration="50")
    publish(channel, queue, b"last")
    wait_ready(channel, queue, 3)
    time.sleep(0.2)
    assert ready(channel, queue) == 3
    assert get_all(channel, queue) == [b"long", b"last"]


def test_unacked_messages_do_not_expire_but_do_when_requeued(channel: BlockingChannel) -> None:
    queue, graveyard = mortal(channel, x_message_ttl=100)
    publish(channel, queue, b"1")
    tag = get_one(channel, queue)[0].delivery_tag
    time.sleep(0.2)
    channel.basic_nack(tag, requeue=True)
    assert get_one(channel, graveyard)[1].headers["x-death"][0]["reason"] == "expired"


def test_ttl_zero_without_a_taker(channel: BlockingChannel) -> None:
    queue, graveyard = mortal(channel, x_message_ttl=0)
    channel.confirm_delivery()
    publish(channel, queue, b"1")
    assert get_one(channel, graveyard)[2] == b"1"
    taken: list[bytes] = []
    channel.basic_consume(queue, lambda _c, _m, _p, body: taken.append(body), auto_ack=True)
    publish(channel, queue, b"2")
    eventually(lambda: channel.connection.process_data_events(0.01) or taken)
    assert taken == [b"2"]


def test_expiration_is_removed_and_remembered(channel: BlockingChannel) -> None:
    queue, graveyard = mortal(channel)
    publish(channel, queue, b"1", expiration="30", correlation_id="c", priority=3, delivery_mode=2)
    method, properties, body = get_one(channel, graveyard)
    assert (properties.expiration, properties.correlation_id, properties.priority) == (None, "c", 3)
    assert (properties.delivery_mode, body, method.redelivered) == (2, b"1", False)
    death = properties.headers["x-death"][0]
    assert (death["original-expiration"], death["reason"]) == ("30", "expired")


@pytest.mark.parametrize("act", ["reject", "nack"])
def test_rejected_messages_are_dead_lettered_with_x_death(
    broker: Target, channel: BlockingChannel, act: str
) -> None:
    queue, graveyard = mortal(channel)
    publish(channel, queue, b"1", headers={"mine": "kept"})
    getattr(channel, f"basic_{act}")(get_one(channel, queue)[0].delivery_tag, requeue=False)
    method, properties, _ = get_one(channel, graveyard)
    assert (method.exchange, method.routing_key) == ("", graveyard)
    headers = properties.headers
    (death,) = headers["x-death"]
    assert set(death) == {"count", "reason", "queue", "time", "exchange", "routing-keys"}
    assert (death["count"], death["reason"], death["queue"]) == (1, "rejected", queue)
    assert (death["exchange"], death["routing-keys"]) == ("", [queue])
    assert headers["mine"] == "kept"
    assert headers["x-first-death-reason"] == "rejected"
    assert headers["x-first-death-queue"] == queue
    assert headers["x-first-death-exchange"] == ""
    if not broker.is_rabbitmq_3_10:
        assert headers["x-last-death-reason"] == "rejected"
        assert headers["x-last-death-queue"] == queue
        assert headers["x-last-death-exchange"] == ""


def test_nack_multiple_dead_letters_each_in_order(channel: BlockingChannel) -> None:
    queue, graveyard = mortal(channel)
    publish(channel, queue, b"1", b"2", b"3")
    tags = [get_one(channel, queue)[0].delivery_tag for _ in range(3)]
    channel.basic_nack(tags[-1], multiple=True, requeue=False)
    wait_ready(channel, graveyard, 3)
    assert get_all(channel, graveyard) == [b"1", b"2", b"3"]


def test_x_death_counts_per_queue_and_reason_most_recent_first(channel: BlockingChannel) -> None:
    queue, graveyard = mortal(channel)
    publish(channel, queue, b"1")
    for _ in range(3):
        channel.basic_reject(get_one(channel, queue)[0].delivery_tag, requeue=False)
        method, properties, body = get_one(channel, graveyard)
        channel.basic_ack(method.delivery_tag)
        channel.basic_publish("", queue, body, properties)
    second, second_graveyard = mortal(channel)
    channel.basic_publish("", second, b"1", properties)
    channel.basic_reject(get_one(channel, second)[0].delivery_tag, requeue=False)
    deaths = get_one(channel, second_graveyard)[1].headers["x-death"]
    assert [(death["queue"], death["count"]) for death in deaths] == [(second, 1), (queue, 3)]


def test_without_a_new_key_the_old_ones_route_cc_included(
    channel: BlockingChannel, name: str
) -> None:
    exchange = f"{name}.dlx"
    channel.exchange_declare(exchange, "direct", auto_delete=True)
    first, second = queue_of(channel), queue_of(channel)
    queue = queue_of(channel, x_dead_letter_exchange=exchange)
    channel.queue_bind(first, exchange, queue)
    channel.queue_bind(second, exchange, "carbon")
    publish(channel, queue, b"1", headers={"CC": ["carbon"]}, expiration="20")
    method, properties, _ = get_one(channel, first)
    assert (method.exchange, method.routing_key) == (exchange, queue)
    assert properties.headers["x-death"][0]["routing-keys"] == [queue, "carbon"]
    assert get_one(channel, second)[2] == b"1"


def test_a_missing_dead_letter_exchange_drops(channel: BlockingChannel, name: str) -> None:
    queue = queue_of(channel, x_dead_letter_exchange=f"{name}.none", x_message_ttl=20)
    publish(channel, queue, b"1")
    wait_ready(channel, queue, 0)


def test_purge_and_delete_do_not_dead_letter(channel: BlockingChannel) -> None:
    queue, graveyard = mortal(channel)
    publish(channel, queue, b"1")
    wait_ready(channel, queue, 1)
    channel.queue_purge(queue)
    publish(channel, queue, b"2")
    channel.queue_delete(queue)
    assert get_all(channel, graveyard) == []


def test_an_automatic_cycle_is_cut(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_dead_letter_exchange="", x_message_ttl=30)
    publish(channel, queue, b"1")
    wait_ready(channel, queue, 0)
    time.sleep(0.1)
    assert ready(channel, queue) == 0


def test_a_cycle_with_a_rejection_goes_on(channel: BlockingChannel, name: str) -> None:
    work, pause = f"{name}.work", f"{name}.pause"
    queue_of(channel, work, x_dead_letter_exchange="", x_dead_letter_routing_key=pause)
    queue_of(
        channel, pause, x_dead_letter_exchange="", x_dead_letter_routing_key=work, x_message_ttl=30
    )
    publish(channel, work, b"1")
    for round_number in range(3):
        method, properties, _ = get_one(channel, work)
        deaths = (properties.headers or {}).get("x-death", [])
        counts = {(death["queue"], death["reason"]): death["count"] for death in deaths}
        expected = {(pause, "expired"): round_number, (work, "rejected"): round_number}
        assert counts == (expected if round_number else {})
        channel.basic_reject(method.delivery_tag, requeue=False)


def test_priorities_go_first_and_keep_order_within_a_level(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_priority=5)
    for body, priority in (
        (b"a0", 0),
        (b"b5", 5),
        (b"c1", 1),
        (b"d9", 9),
        (b"e5", 5),
        (b"f", None),
    ):
        publish(channel, queue, body, priority=priority)
    wait_ready(channel, queue, 6)
    assert get_all(channel, queue) == [b"b5", b"d9", b"e5", b"c1", b"a0", b"f"]


def test_requeue_returns_into_its_level(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_priority=5)
    publish(channel, queue, b"h1", b"h2", priority=5)
    publish(channel, queue, b"l1", priority=1)
    wait_ready(channel, queue, 3)
    channel.basic_nack(get_one(channel, queue)[0].delivery_tag)
    assert get_all(channel, queue) == [b"h1", b"h2", b"l1"]


def test_drop_head_evicts_the_highest_level(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_priority=5, x_max_length=2)
    publish(channel, queue, b"high", priority=5)
    publish(channel, queue, b"low1", b"low2", priority=1)
    assert get_all(channel, queue) == [b"low1", b"low2"]


def test_ttl_of_a_low_level_waits_for_the_high_ones(channel: BlockingChannel) -> None:
    queue = queue_of(channel, x_max_priority=5)
    publish(channel, queue, b"high", priority=5)
    publish(channel, queue, b"low", priority=1, expiration="30")
    wait_ready(channel, queue, 2)
    time.sleep(0.15)
    assert ready(channel, queue) == 2
    assert get_all(channel, queue) == [b"high"]
