"""Dead letters: every way to die, what the headers say about it, cycles, policies, and the counters.

Source: the classic at-most-once cases of RabbitMQ's dead-letter suite; headers follow 3.13.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection
from pika.exceptions import NackError
from pika.spec import BasicProperties

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

Connect = Callable[..., BlockingConnection]


def mortal(channel: BlockingChannel, **arguments: Any) -> tuple[str, str]:
    """Return (queue, graveyard): what dies in the first comes to the second."""
    graveyard = queue_of(channel)
    queue = queue_of(
        channel, x_dead_letter_exchange="", x_dead_letter_routing_key=graveyard, **arguments
    )
    return queue, graveyard


def reject_one(channel: BlockingChannel, queue: str, requeue: bool = False) -> None:
    channel.basic_reject(get_one(channel, queue)[0].delivery_tag, requeue=requeue)


def deaths_of(properties: Any) -> list[tuple[str, str, int]]:
    """Return (queue, reason, count) of each record, the most recent first."""
    records = (properties.headers or {}).get("x-death", [])
    return [(death["queue"], death["reason"], death["count"]) for death in records]


# -- which ways to say no are deaths -----------------------------------------------------------------------------


def test_many_rejected_one_by_one_are_all_dead_letters(channel: BlockingChannel) -> None:
    queue, graveyard = mortal(channel)
    publish(channel, queue, *[b"%d" % n for n in range(20)])
    tags = [get_one(channel, queue)[0].delivery_tag for _ in range(20)]
    for tag in tags:
        channel.basic_reject(tag, requeue=False)
    wait_ready(channel, graveyard, 20)
    assert get_all(channel, graveyard) == [b"%d" % n for n in range(20)]


@pytest.mark.parametrize("act", ["nack", "reject", "nack multiple"])
def test_giving_back_is_no_death(channel: BlockingChannel, act: str) -> None:
    queue, graveyard = mortal(channel)
    publish(channel, queue, b"1", b"2")
    tags = [get_one(channel, queue)[0].delivery_tag for _ in range(2)]
    verb, _, multiple = act.partition(" ")
    options = {"multiple": True} if multiple else {}
    for tag in tags[-1:] if multiple else tags:
        getattr(channel, f"basic_{verb}")(tag, requeue=True, **options)
    wait_ready(channel, queue, 2)
    assert ready(channel, graveyard) == 0
    reject_one(channel, queue)
    assert deaths_of(get_one(channel, graveyard)[1]) == [(queue, "rejected", 1)]


def test_what_a_full_queue_drops_is_a_dead_letter(channel: BlockingChannel) -> None:
    queue, graveyard = mortal(channel, x_max_length=1)
    publish(channel, queue, b"1", b"2", b"3")
    wait_ready(channel, graveyard, 2)
    first, second = get_one(channel, graveyard), get_one(channel, graveyard)
    assert (first[2], second[2]) == (b"1", b"2")
    assert deaths_of(first[1]) == [(queue, "maxlen", 1)]
    assert get_all(channel, queue) == [b"3"]


def test_a_refused_publish_is_a_dead_letter_and_nacked(channel: BlockingChannel) -> None:
    queue, graveyard = mortal(channel, x_max_length=1, x_overflow="reject-publish-dlx")
    channel.confirm_delivery()
    publish(channel, queue, b"1")
    with pytest.raises(NackError):
        publish(channel, queue, b"2")
    _, properties, body = get_one(channel, graveyard)
    assert (body, deaths_of(properties)) == (b"2", [(queue, "maxlen", 1)])


def test_a_missing_exchange_drops_and_works_once_it_is_declared(
    channel: BlockingChannel, name: str
) -> None:
    queue, graveyard = queue_of(channel, x_dead_letter_exchange=f"{name}.x"), queue_of(channel)
    publish(channel, queue, b"lost")
    reject_one(channel, queue)
    wait_ready(channel, queue, 0)
    channel.exchange_declare(f"{name}.x", "fanout", auto_delete=True)
    channel.queue_bind(graveyard, f"{name}.x")
    publish(channel, queue, b"kept")
    reject_one(channel, queue)
    assert get_one(channel, graveyard)[2] == b"kept"
    assert ready(channel, graveyard) == 0


# -- routing keys, CC and BCC ------------------------------------------------------------------------------------


def test_a_key_of_the_queue_replaces_the_messages_own(
    broker: Target, channel: BlockingChannel, exchange: Callable[..., str]
) -> None:
    """The carbon copies' keys no longer route either; the CC header stays since 3.13."""
    dead = exchange("direct")
    chosen, carbon = queue_of(channel), queue_of(channel)
    channel.queue_bind(chosen, dead, "chosen")
    channel.queue_bind(carbon, dead, "carbon")
    queue = queue_of(channel, x_dead_letter_exchange=dead, x_dead_letter_routing_key="chosen")
    publish(channel, queue, b"1", headers={"CC": ["carbon"]})
    reject_one(channel, queue)
    method, properties, _ = get_one(channel, chosen)
    assert method.routing_key == "chosen"
    assert properties.headers["x-death"][0]["routing-keys"] == [queue, "carbon"]
    assert ("CC" in properties.headers) is not broker.is_rabbitmq_3_10
    assert ready(channel, carbon) == 0


def test_blind_copies_route_dead_letters_and_never_show(
    channel: BlockingChannel, exchange: Callable[..., str]
) -> None:
    dead = exchange("direct")
    first, blind = queue_of(channel), queue_of(channel)
    queue = queue_of(channel, x_dead_letter_exchange=dead)
    channel.queue_bind(first, dead, queue)
    channel.queue_bind(blind, dead, "blind")
    publish(channel, queue, b"1", headers={"BCC": ["blind"]})
    reject_one(channel, queue)
    for graveyard in (first, blind):
        method, properties, _ = get_one(channel, graveyard)
        assert (method.exchange, method.routing_key) == (dead, queue)
        assert "BCC" not in properties.headers
        assert properties.headers["x-death"][0]["routing-keys"] == [queue]


def test_a_blind_copy_dies_in_the_queue_that_it_reached(
    channel: BlockingChannel, exchange: Callable[..., str]
) -> None:
    dead = exchange("fanout")
    graveyard = queue_of(channel)
    channel.queue_bind(graveyard, dead)
    blind = queue_of(channel, x_dead_letter_exchange=dead, x_message_ttl=20)
    source = queue_of(channel)
    publish(channel, source, b"1", headers={"BCC": [blind]})
    _, properties, _ = get_one(channel, graveyard)
    assert "BCC" not in properties.headers
    (death,) = properties.headers["x-death"]
    assert (death["queue"], death["routing-keys"]) == (blind, [source])


def test_what_a_blind_copy_alone_brought_is_dead_lettered_by_its_key(
    channel: BlockingChannel, exchange: Callable[..., str]
) -> None:
    """Twice: the key stays with the dead letter."""
    dead = exchange("direct")
    second = queue_of(channel, x_dead_letter_exchange="")
    first = queue_of(channel, x_dead_letter_exchange=dead)
    channel.queue_bind(second, dead, first)
    channel.basic_publish("", "nowhere", b"1", BasicProperties(headers={"BCC": [first]}))
    reject_one(channel, first)
    reject_one(channel, second)
    method, properties, _ = get_one(channel, first)
    assert method.routing_key == "nowhere"
    assert [death["routing-keys"] for death in properties.headers["x-death"]] == [["nowhere"]] * 2


# -- headers -----------------------------------------------------------------------------------------------------


def test_a_message_without_headers_gets_them(channel: BlockingChannel) -> None:
    queue, graveyard = mortal(channel)
    publish(channel, queue, b"1")
    reject_one(channel, queue)
    assert deaths_of(get_one(channel, graveyard)[1]) == [(queue, "rejected", 1)]


def test_a_persistent_message_with_a_thousand_headers_expires_to_where_it_shall(
    channel: BlockingChannel,
) -> None:
    queue, graveyard = mortal(channel, x_message_ttl=20)
    given = {f"h{number}": number for number in range(1010)}
    publish(channel, queue, b"1", headers=given, delivery_mode=2)
    _, properties, _ = get_one(channel, graveyard)
    assert properties.headers.items() >= given.items()
    assert deaths_of(properties) == [(queue, "expired", 1)]


@pytest.mark.parametrize("per_message", [False, True])
def test_an_expired_message_says_so_and_remembers_its_own_expiration(
    channel: BlockingChannel, per_message: bool
) -> None:
    queue, graveyard = mortal(channel, **({} if per_message else {"x_message_ttl": 20}))
    publish(channel, queue, b"1", expiration="20" if per_message else None)
    _, properties, _ = get_one(channel, graveyard)
    (death,) = properties.headers["x-death"]
    assert (death["reason"], death.get("original-expiration")) == (
        "expired",
        "20" if per_message else None,
    )
    assert properties.expiration is None


def test_the_first_death_is_told_once_and_the_last_each_time(
    broker: Target, channel: BlockingChannel
) -> None:
    graveyard = queue_of(channel)
    second = queue_of(channel, x_dead_letter_exchange="", x_dead_letter_routing_key=graveyard)
    first = queue_of(
        channel, x_dead_letter_exchange="", x_dead_letter_routing_key=second, x_message_ttl=20
    )
    publish(channel, first, b"1")
    reject_one(channel, second)
    headers = get_one(channel, graveyard)[1].headers
    assert (headers["x-first-death-queue"], headers["x-first-death-reason"]) == (first, "expired")
    if not broker.is_rabbitmq_3_10:
        assert (headers["x-last-death-queue"], headers["x-last-death-reason"]) == (
            second,
            "rejected",
        )


def test_the_exchange_of_the_first_death_is_where_it_was_published(
    channel: BlockingChannel, exchange: Callable[..., str]
) -> None:
    source = exchange("topic")
    queue, graveyard = mortal(channel)
    channel.queue_bind(queue, source, "a.#")
    channel.basic_publish(source, "a.b", b"1")
    reject_one(channel, queue)
    headers = get_one(channel, graveyard)[1].headers
    assert headers["x-first-death-exchange"] == source
    (death,) = headers["x-death"]
    assert (death["exchange"], death["routing-keys"]) == (source, ["a.b"])


def test_a_publisher_that_sends_the_headers_on_continues_the_record(
    channel: BlockingChannel,
) -> None:
    queue, graveyard = mortal(channel)
    publish(channel, queue, b"1")
    reject_one(channel, queue)
    _, properties, body = get_one(channel, graveyard)
    channel.basic_publish("", queue, body, properties)
    reject_one(channel, queue)
    assert deaths_of(get_one(channel, graveyard)[1]) == [(queue, "rejected", 2)]


def test_a_rejection_and_two_expiries_are_counted_by_queue_and_reason(
    channel: BlockingChannel, name: str
) -> None:
    """work rejects to pause, pause expires back to work: twice."""
    work, pause = f"{name}.work", f"{name}.pause"
    queue_of(channel, work, x_dead_letter_exchange="", x_dead_letter_routing_key=pause)
    queue_of(
        channel, pause, x_dead_letter_exchange="", x_dead_letter_routing_key=work, x_message_ttl=10
    )
    publish(channel, work, b"1")
    reject_one(channel, work)
    assert deaths_of(_peek(channel, work)) == [(pause, "expired", 1), (work, "rejected", 1)]
    reject_one(channel, work)
    assert deaths_of(_peek(channel, work)) == [(pause, "expired", 2), (work, "rejected", 2)]


def _peek(channel: BlockingChannel, queue: str) -> Any:
    method, properties, _ = get_one(channel, queue)
    channel.basic_nack(method.delivery_tag)
    return properties


# -- cycles ------------------------------------------------------------------------------------------------------


def test_a_cycle_by_length_alone_is_cut(channel: BlockingChannel, name: str) -> None:
    queue = f"{name}.q"
    queue_of(channel, queue, x_dead_letter_exchange="", x_max_length=1)
    publish(channel, queue, b"1", b"2", b"3")
    assert get_all(channel, queue) == [b"3"], "what was dropped does not come back and drop more"


def test_a_cycle_over_two_queues_by_ttl_alone_is_cut(channel: BlockingChannel, name: str) -> None:
    first, second = f"{name}.1", f"{name}.2"
    for queue, other in ((first, second), (second, first)):
        queue_of(
            channel,
            queue,
            x_dead_letter_exchange="",
            x_dead_letter_routing_key=other,
            x_message_ttl=10,
        )
    publish(channel, first, b"1")
    eventually(lambda: ready(channel, first) + ready(channel, second) == 0)


def test_a_cycle_with_a_rejection_comes_back_to_the_same_queue(
    channel: BlockingChannel, name: str
) -> None:
    queue = queue_of(channel, f"{name}.q", x_dead_letter_exchange="")
    publish(channel, queue, b"1")
    for count in range(1, 4):
        reject_one(channel, queue)
        assert deaths_of(_peek(channel, queue)) == [(queue, "rejected", count)]


# -- policies ----------------------------------------------------------------------------------------------------


@pytest.fixture
def policy(broker: Target, name: str) -> Iterator[Callable[[dict[str, Any] | None], None]]:
    """Yield a setter of one policy for the test's own queues; None clears it."""

    def set_one(definition: dict[str, Any] | None) -> None:
        if definition is None:
            broker.ctl("clear_policy", name)
        else:
            broker.ctl("set_policy", name, f"^{name}", json.dumps(definition))

    set_one({"max-length": 1000})
    yield set_one
    set_one(None)


Policy = Callable[[dict[str, Any] | None], None]


def test_exchange_and_key_by_policy_and_cleared_for_later_deaths_only(
    channel: BlockingChannel, name: str, policy: Policy
) -> None:
    graveyard = queue_of(channel)
    queue = queue_of(channel, f"{name}.q")
    publish(channel, queue, b"1", b"2", b"3")
    reject_one(channel, queue)
    policy({"dead-letter-exchange": "", "dead-letter-routing-key": graveyard})
    reject_one(channel, queue)
    assert get_one(channel, graveyard)[2] == b"2"
    policy({"max-length": 1000})
    reject_one(channel, queue)
    wait_ready(channel, queue, 0)
    assert ready(channel, graveyard) == 0


def test_the_declared_exchange_wins_over_the_policy(
    channel: BlockingChannel, name: str, policy: Policy
) -> None:
    mine, theirs = queue_of(channel), queue_of(channel)
    queue = queue_of(
        channel, f"{name}.q", x_dead_letter_exchange="", x_dead_letter_routing_key=mine
    )
    policy({"dead-letter-exchange": "", "dead-letter-routing-key": theirs})
    publish(channel, queue, b"1")
    reject_one(channel, queue)
    assert get_one(channel, mine)[2] == b"1"
    assert ready(channel, theirs) == 0


# -- transactions, priorities ------------------------------------------------------------------------------------


def test_a_rejection_in_a_transaction_is_a_death_at_commit(channel: BlockingChannel) -> None:
    queue, graveyard = mortal(channel)
    publish(channel, queue, b"1")
    method, _, _ = get_one(channel, queue)
    channel.tx_select()
    channel.basic_reject(method.delivery_tag, requeue=False)
    assert ready(channel, graveyard) == 0
    channel.tx_commit()
    assert get_one(channel, graveyard)[2] == b"1"


def test_dead_letters_keep_the_order_of_their_deaths(channel: BlockingChannel) -> None:
    queue, graveyard = mortal(channel, x_message_ttl=50)
    publish(channel, queue, *[b"%d" % n for n in range(50)])
    wait_ready(channel, graveyard, 50)
    assert get_all(channel, graveyard) == [b"%d" % n for n in range(50)]
