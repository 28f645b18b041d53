"""Permissions and topic permissions, from the API to the wire.

Source: RabbitMQ's topic permission and access control suites.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.support.black_box import channel_error, get_all, get_one
from tests.support.node_client import NodeClient

pytestmark = [pytest.mark.slow, pytest.mark.needs_server]


def allow_topic(node: NodeClient, user: str, vhost: str, write: str, read: str) -> None:
    body = {"exchange": "amq.topic", "write": write, "read": read}
    assert node.api("PUT", f"/api/topic-permissions/{vhost}/{user}", body).status in {201, 204}


def publishes(channel: BlockingChannel, exchange: str, key: str) -> Callable[[], None]:
    """Publish and wait until the broker has answered what follows."""

    def act() -> None:
        channel.basic_publish(exchange, key, b"x")
        channel.basic_qos(prefetch_count=1)

    return act


def test_a_routing_key_must_match_the_write_pattern(node: NodeClient, name: str) -> None:
    vhost = node.vhost(name)
    user = node.user(name, vhost)
    allow_topic(node, user, vhost, write="^a", read="^b")
    channel = node.channel(user, vhost)
    queue = channel.queue_declare("").method.queue
    channel.queue_bind(queue, "amq.topic", "b.#")
    publishes(channel, "amq.topic", "a.b.c")()
    text = f"write access to topic 'b.b.c' in exchange 'amq.topic' in vhost '{vhost}' refused for user '{user}'"
    with channel_error(403, text):
        publishes(channel, "amq.topic", "b.b.c")()


def test_a_binding_key_must_match_the_read_pattern(node: NodeClient, name: str) -> None:
    vhost = node.vhost(name)
    user = node.user(name, vhost)
    allow_topic(node, user, vhost, write=".*", read="^b")
    channel = node.channel(user, vhost)
    queue = channel.queue_declare("").method.queue
    channel.queue_bind(queue, "amq.topic", "b.c")
    channel.basic_publish("amq.topic", "b.c", b"x")
    assert get_one(channel, queue)[2] == b"x"
    text = f"read access to topic 'a.c' in exchange 'amq.topic' in vhost '{vhost}' refused for user '{user}'"
    with channel_error(403, text):
        channel.queue_bind(queue, "amq.topic", "a.c")


def test_other_exchanges_and_types_ask_for_no_topic(node: NodeClient, name: str) -> None:
    vhost = node.vhost(name)
    user = node.user(name, vhost)
    allow_topic(node, user, vhost, write="^$", read="^$")
    channel = node.channel(user, vhost)
    channel.exchange_declare("other", "topic")
    queue = channel.queue_declare("").method.queue
    for exchange in ("other", "amq.direct"):
        channel.queue_bind(queue, exchange, "k")
        publishes(channel, exchange, "k")()
    assert get_all(channel, queue) == [b"x", b"x"]


def test_patterns_may_name_the_user_and_the_virtual_host(node: NodeClient, name: str) -> None:
    vhost = node.vhost(name)
    user = node.user(name, vhost)
    allow_topic(node, user, vhost, write="^{vhost}.{username}.a", read=".*")
    channel = node.channel(user, vhost)
    publishes(channel, "amq.topic", f"{vhost}.{user}.a")()
    key = f"{vhost}.other.a"
    text = f"write access to topic '{key}' in exchange 'amq.topic' in vhost '{vhost}' refused for user '{user}'"
    with channel_error(403, text):
        publishes(channel, "amq.topic", key)()


def test_cleared_topic_permissions_allow_everything_again(node: NodeClient, name: str) -> None:
    vhost = node.vhost(name)
    user = node.user(name, vhost)
    allow_topic(node, user, vhost, write="^$", read="^$")
    assert len(node.get(f"/api/topic-permissions/{vhost}/{user}")) == 1
    node.api("DELETE", f"/api/topic-permissions/{vhost}/{user}")
    assert node.api("GET", f"/api/topic-permissions/{vhost}/{user}").status == 404
    publishes(node.channel(user, vhost), "amq.topic", "any.key")()


@pytest.mark.parametrize(
    ("operation", "needs"),
    [
        (lambda channel: channel.queue_declare("new"), "configure access to queue 'new'"),
        (
            lambda channel: channel.exchange_declare("new", "direct"),
            "configure access to exchange 'new'",
        ),
        (lambda channel: channel.queue_delete("q"), "configure access to queue 'q'"),
        (lambda channel: channel.queue_bind("q", "amq.direct", "k"), "write access to queue 'q'"),
        (lambda channel: channel.basic_get("q"), "read access to queue 'q'"),
        (lambda channel: channel.basic_consume("q", lambda *_: None), "read access to queue 'q'"),
        (lambda channel: channel.queue_purge("q"), "read access to queue 'q'"),
        (
            lambda channel: publishes(channel, "", "q")(),
            "write access to exchange 'amq.default'",
        ),
        (
            lambda channel: publishes(channel, "amq.fanout", "")(),
            "write access to exchange 'amq.fanout'",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_operation_asks_for_its_permission(
    node: NodeClient, name: str, operation: Callable[[BlockingChannel], object], needs: str
) -> None:
    vhost = node.vhost(name)
    owner, user = node.user(f"{name}.owner", vhost), node.user(name)
    node.channel(owner, vhost).queue_declare("q")
    node.permit(user, vhost, "^$", "^$", "^$")
    channel = node.channel(user, vhost)
    channel.queue_declare("q", passive=True)  # needs none
    with channel_error(403, f"{needs} in vhost '{vhost}' refused for user '{user}'"):
        operation(channel)


def test_an_empty_pattern_allows_nothing(node: NodeClient, name: str) -> None:
    vhost = node.vhost(name)
    user = node.user(name)
    node.permit(user, vhost, configure="", write="", read="")
    with channel_error(
        403, f"configure access to queue 'q' in vhost '{vhost}' refused for user '{user}'"
    ):
        node.channel(user, vhost).queue_declare("q")
