"""Limits of users and virtual hosts, and what counts towards them.

Source: the single-node cases of RabbitMQ's suites on per-user and per-vhost limits and connection tracking.
"""

from __future__ import annotations

import re

import pytest
from pika.exceptions import ConnectionClosedByBroker, ProbableAccessDeniedError

from tests.support.black_box import channel_error, drop, eventually
from tests.support.node_client import NodeClient

pytestmark = [pytest.mark.slow, pytest.mark.needs_server]


def limit_user(node: NodeClient, user: str, limit: str, value: int | None) -> None:
    path = f"/api/user-limits/{user}/{limit}"
    answer = node.api("DELETE", path) if value is None else node.api("PUT", path, {"value": value})
    assert answer.status in {201, 204}, answer


def limit_vhost(node: NodeClient, vhost: str, limit: str, value: int | None) -> None:
    path = f"/api/vhost-limits/{vhost}/{limit}"
    answer = node.api("DELETE", path) if value is None else node.api("PUT", path, {"value": value})
    assert answer.status in {201, 204}, answer


def is_refused(node: NodeClient, user: str, vhost: str, text: str) -> None:
    with pytest.raises(ProbableAccessDeniedError, match=re.escape(text)):
        node.connect(user, vhost)


def connections_of(node: NodeClient, key: str, value: str) -> int:
    return sum(row[key] == value for row in node.get("/api/connections"))


def test_connections_are_counted_for_each_user(node: NodeClient, name: str) -> None:
    vhost = node.vhost(name)
    users = [node.user(f"{name}.{n}", vhost) for n in (1, 2)]
    opened = [node.connect(user, vhost) for user in (users[0], users[0], users[1])]
    assert [connections_of(node, "user", user) for user in users] == [2, 1]
    assert connections_of(node, "vhost", vhost) == 3
    opened[0].close()
    drop(opened[2])
    eventually(lambda: [connections_of(node, "user", user) for user in users] == [1, 0])


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_a_user_has_so_many_connections(node: NodeClient, name: str, limit: int) -> None:
    vhost = node.vhost(name)
    limited, free = node.user(f"{name}.1", vhost), node.user(f"{name}.2", vhost)
    limit_user(node, limited, "max-connections", limit)
    opened = [node.connect(limited, vhost) for _ in range(limit)]
    text = f"connection refused for user '{limited}': user connection limit ({limit}) is reached"
    is_refused(node, limited, vhost, text)
    assert node.connect(free, vhost).is_open, "another user's limit is its own"
    if opened:
        opened[0].close()
        eventually(lambda: connections_of(node, "user", limited) == limit - 1)
        assert node.connect(limited, vhost).is_open
    limit_user(node, limited, "max-connections", None)
    assert node.connect(limited, vhost).is_open


def test_no_limit_is_a_negative_one(node: NodeClient, name: str) -> None:
    vhost = node.vhost(name)
    user = node.user(name, vhost)
    limit_user(node, user, "max-connections", -1)
    limit_vhost(node, vhost, "max-connections", -1)
    limit_vhost(node, vhost, "max-queues", -1)
    assert node.channel(user, vhost).queue_declare("").method.queue


@pytest.mark.parametrize("limit", [0, 3])
def test_a_user_has_so_many_channels_over_all_connections(
    node: NodeClient, name: str, limit: int
) -> None:
    vhost = node.vhost(name)
    user = node.user(name, vhost)
    limit_user(node, user, "max-channels", limit)
    first, second = node.connect(user, vhost), node.connect(user, vhost)
    channels = [connection.channel() for connection in [first, second, first][:limit]]
    with pytest.raises(
        ConnectionClosedByBroker, match=rf"maximum allowed user limit of \({limit}\)"
    ):
        second.channel()
        second.process_data_events(5)
    if channels:
        channels[0].close()
        third = node.connect(user, vhost)
        eventually(lambda: len(node.get(f"/api/vhosts/{vhost}/channels")) < limit)
        assert third.channel().is_open


def test_limits_of_a_user_are_listed_and_cleared(node: NodeClient, name: str) -> None:
    user = node.user(name)
    limit_user(node, user, "max-connections", 5)
    limit_user(node, user, "max-channels", 9)
    (row,) = node.get(f"/api/user-limits/{user}")
    assert row == {"user": user, "value": {"max-connections": 5, "max-channels": 9}}
    limit_user(node, user, "max-channels", None)
    (row,) = node.get(f"/api/user-limits/{user}")
    assert row["value"] == {"max-connections": 5}
    limit_user(node, user, "max-connections", None)
    assert node.get(f"/api/user-limits/{user}") == []


@pytest.mark.parametrize("limit", [0, 2])
def test_a_virtual_host_has_so_many_connections(node: NodeClient, name: str, limit: int) -> None:
    vhost, other = node.vhost(name), node.vhost(f"{name}.other")
    users = [node.user(f"{name}.{n}", vhost, other) for n in range(2)]
    limit_vhost(node, vhost, "max-connections", limit)
    opened = [node.connect(users[n % 2], vhost) for n in range(limit)]
    text = f"access to vhost '{vhost}' refused for user '{users[0]}': connection limit ({limit}) is reached"
    is_refused(node, users[0], vhost, text)
    assert node.connect(users[0], other).is_open, "another virtual host's limit is its own"
    if opened:
        drop(opened[0])
        eventually(lambda: connections_of(node, "vhost", vhost) == limit - 1)
        assert node.connect(users[0], vhost).is_open
    limit_vhost(node, vhost, "max-connections", None)
    assert node.connect(users[1], vhost).is_open


@pytest.mark.parametrize("limit", [0, 2])
def test_a_virtual_host_has_so_many_queues(node: NodeClient, name: str, limit: int) -> None:
    vhost, other = node.vhost(name), node.vhost(f"{name}.other")
    user = node.user(name, vhost, other)
    limit_vhost(node, vhost, "max-queues", limit)
    channel = node.channel(user, vhost)
    for number in range(limit):
        channel.queue_declare(f"q{number}", durable=True)
        channel.queue_declare(f"q{number}", durable=True)  # again is no other queue
    text = f"cannot declare queue 'more': queue limit in vhost '{vhost}' ({limit}) is reached"
    for durable in (True, False):
        with channel_error(406, text):
            node.channel(user, vhost).queue_declare("more", durable=durable)
    assert node.channel(user, other).queue_declare("more").method.queue == "more"
    if limit:
        channel.queue_delete("q0")
        assert channel.queue_declare("more").method.queue == "more"


def test_a_server_named_queue_counts_and_an_expired_one_frees_its_place(
    node: NodeClient, name: str
) -> None:
    vhost = node.vhost(name)
    channel = node.channel(node.user(name, vhost), vhost)
    limit_vhost(node, vhost, "max-queues", 1)
    channel.queue_declare("", arguments={"x-expires": 50})
    eventually(lambda: node.get(f"/api/queues/{vhost}") == [])
    assert channel.queue_declare("").method.queue.startswith("amq.gen-")
    with channel_error(
        406, f"cannot declare queue 'b': queue limit in vhost '{vhost}' (1) is reached"
    ):
        channel.queue_declare("b")


def test_a_deleted_users_connections_are_closed_and_no_longer_counted(
    node: NodeClient, name: str
) -> None:
    vhost = node.vhost(name)
    user = node.user(name, vhost)
    connection = node.connect(user, vhost)
    connection.channel()
    assert connections_of(node, "user", user) == 1
    node.api("DELETE", f"/api/users/{user}")
    with pytest.raises(ConnectionClosedByBroker, match=f"user '{user}' is deleted"):
        while True:
            connection.process_data_events(1)
    eventually(lambda: connections_of(node, "user", user) == 0)
    assert node.get(f"/api/vhosts/{vhost}/channels") == []
