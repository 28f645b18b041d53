"""Limits of users and virtual hosts, and topic permissions, in what permissions.py does not ask."""

from __future__ import annotations

import time
from typing import Any

from tests.differential.broker import Broker
from tests.differential.peer import Peer, wait_for

Record = Any


def _limited(broker: Broker, vhost: str = "/") -> Peer:
    user = broker.user("fenced")
    broker.permit(user, ".*", ".*", ".*", vhost)
    return broker.peer(user=user, password=user, vhost=vhost)


def _is_open(answer: Any) -> bool:
    return bool(answer["method"] == "connection.openok")


def _topics(broker: Broker, exchange: str, write: str, read: str, vhost: str = "%2F") -> Record:
    body = {"exchange": exchange, "write": write, "read": read}
    made = broker.http("PUT", f"topic-permissions/{vhost}/{broker.own('fenced')}", body)
    time.sleep(0.05)  # RabbitMQ's channels hear of it later than HTTP is answered
    return made


# ---- topic permissions --------------------------------------------------------------------------------------------


def keys_of_cc_are_not_checked(broker: Broker) -> Record:
    owner = broker.peer()
    owner.queue("q")
    owner.bind("q", "amq.topic", "secret.#")
    peer = _limited(broker)
    _topics(broker, "amq.topic", "^open", ".*")
    peer.publish("amq.topic", "open.1", b"1", headers={"CC": ["secret.1"]})
    allowed = peer.sync()
    peer.publish("amq.topic", "secret.1", b"2")
    return [allowed, peer.sync(), owner.drain("q")]


def only_topic_exchanges_are_checked(broker: Broker) -> Record:
    peer = _limited(broker)
    for exchange in ("amq.direct", "amq.fanout", "amq.headers", "amq.topic"):
        _topics(broker, exchange, "^$", "^$")
    outcome = []
    for exchange in ("amq.direct", "amq.fanout", "amq.headers", "amq.topic"):
        peer.publish(exchange, "k", b"1")
        outcome.append(peer.sync())
    return outcome


def binding_keys_are_read(broker: Broker) -> Record:
    peer = _limited(broker)
    _topics(broker, "amq.topic", ".*", "^mine\\.")
    peer.queue("q")
    return [
        peer.bind("q", "amq.topic", "mine.#"),
        peer.bind("q", "amq.topic", "#"),
        peer.unbind("q", "amq.topic", "mine.#"),
        peer.unbind("q", "amq.topic", "yours.#"),
        peer.bind_exchange("amq.fanout", "amq.topic", "mine.1"),
        peer.bind_exchange("amq.fanout", "amq.topic", "yours.1"),
        peer.unbind_exchange("amq.fanout", "amq.topic", "mine.1"),
    ]


def names_in_the_pattern_are_filled_in(broker: Broker) -> Record:
    vhost, owner = broker.inside("topical")
    owner.exchange("x", "topic")
    peer = _limited(broker, vhost)
    _topics(broker, "x", "^{vhost}\\.{username}\\.[a-z]+$", ".*", vhost)
    outcome = []
    user = broker.own("fenced")
    for key in (f"{vhost}.{user}.a", f"{vhost}.guest.a", f"other.{user}.a", f"{vhost}.{user}.1"):
        peer.publish("x", key, b"1")
        outcome.append(peer.sync())
    return outcome


def permissions_that_are_cleared_allow_all(broker: Broker) -> Record:
    user = broker.own("fenced")
    peer = _limited(broker)
    _topics(broker, "amq.topic", "^a", ".*")
    peer.publish("amq.topic", "b", b"1")
    refused = peer.sync()
    cleared = broker.http("DELETE", f"topic-permissions/%2F/{user}")
    time.sleep(0.05)  # RabbitMQ's channels hear of it later than HTTP is answered
    later = broker.peer(user=user, password=user)
    later.publish("amq.topic", "b", b"1")
    return [refused, cleared, later.sync()]


def two_exchanges_have_their_own(broker: Broker) -> Record:
    user = broker.own("fenced")
    owner = broker.peer()
    owner.exchange("x", "topic")
    peer = _limited(broker)
    made = [_topics(broker, "amq.topic", "^a", "^a"), _topics(broker, "x", "^b", "^b")]
    outcome = []
    for exchange, key in (("amq.topic", "a"), ("amq.topic", "b"), ("x", "a"), ("x", "b")):
        peer.publish(exchange, key, b"1")
        outcome.append(peer.sync())
    listed = broker.http("GET", f"topic-permissions/%2F/{user}")
    return [made, outcome, [listed[0], sorted(listed[1], key=str)]]


def dead_letters_are_not_checked(broker: Broker) -> Record:
    peer = _limited(broker)
    _topics(broker, "amq.topic", "^$", ".*")
    peer.queue("q", {"x-dead-letter-exchange": "amq.topic", "x-dead-letter-routing-key": "k"})
    peer.queue("dead")
    bound = peer.bind("dead", "amq.topic", "k")
    peer.fill("q", b"1")
    peer.reject(peer.get("q", no_ack=False)["delivery_tag"], requeue=False)
    return [bound, peer.wait_ready("dead", 1)]


# ---- limits -------------------------------------------------------------------------------------------------------


def a_limit_of_queues_counts_all_kinds(broker: Broker) -> Record:
    vhost, peer = broker.inside("queues-2")
    broker.http("PUT", f"vhost-limits/{vhost}/max-queues", {"value": 2})
    return [
        peer.declare("a", exclusive=True),
        peer.declare("", auto_delete=True)["method"],
        peer.declare("c"),
        peer.passive("c"),
        peer.declare("a", exclusive=True),
        peer.delete("a"),
        peer.declare("c"),
    ]


def a_limit_of_no_queues(broker: Broker) -> Record:
    vhost, peer = broker.inside("queues-0")
    set_up = broker.http("PUT", f"vhost-limits/{vhost}/max-queues", {"value": 0})
    refused = peer.declare("a")
    unlimited = broker.http("PUT", f"vhost-limits/{vhost}/max-queues", {"value": -1})
    return [set_up, refused, unlimited, peer.declare("a")]


def a_limit_below_what_is_there(broker: Broker) -> Record:
    vhost, peer = broker.inside("queues-1")
    for name in ("a", "b"):
        peer.declare(name)
    broker.http("PUT", f"vhost-limits/{vhost}/max-queues", {"value": 1})
    return [peer.passive("a"), peer.declare("a"), peer.declare("c"), peer.fill("b", b"1")]


def a_limit_of_queues_over_http(broker: Broker) -> Record:
    vhost, _ = broker.inside("queues-http")
    broker.http("PUT", f"vhost-limits/{vhost}/max-queues", {"value": 0})
    return broker.http("PUT", f"queues/{vhost}/q", {})


def a_limit_of_connections_lets_the_next_in_when_one_ends(broker: Broker) -> Record:
    vhost = broker.vhost("conns")
    broker.permit("guest", ".*", ".*", ".*", vhost)
    broker.http("PUT", f"vhost-limits/{vhost}/max-connections", {"value": 1})
    first = broker.link(vhost=vhost)
    broker.wait_connected("vhost", vhost)
    second = broker.link(vhost=vhost).refusal
    first.close()
    # RabbitMQ counts what was closed a moment later.
    third = wait_for(lambda: broker.link(vhost=vhost).refusal, _is_open)
    return [first.refusal, second, third]


def limits_of_vhost_and_user_in_one_go(broker: Broker) -> Record:
    vhost = broker.vhost("both")
    user = broker.user("fenced")
    broker.permit(user, ".*", ".*", ".*", vhost)
    broker.http("PUT", f"vhost-limits/{vhost}/max-connections", {"value": 0})
    broker.http("PUT", f"user-limits/{user}/max-connections", {"value": 0})
    return broker.link(user=user, password=user, vhost=vhost).refusal


def limits_over_http(broker: Broker) -> Record:
    vhost = broker.vhost("lim")
    user = broker.user("fenced")
    return [
        broker.http("PUT", f"vhost-limits/{vhost}/max-queues", {"value": 5}),
        broker.http("PUT", f"vhost-limits/{vhost}/max-connections", {"value": 7}),
        broker.http("GET", f"vhost-limits/{vhost}"),
        broker.http("DELETE", f"vhost-limits/{vhost}/max-queues"),
        broker.http("DELETE", f"vhost-limits/{vhost}/max-queues"),
        broker.http("GET", f"vhost-limits/{vhost}"),
        broker.http("PUT", "vhost-limits/nowhere/max-queues", {"value": 5}),
        broker.http("PUT", f"user-limits/{user}/max-channels", {"value": 5}),
        broker.http("GET", f"user-limits/{user}"),
        broker.http("DELETE", f"user-limits/{user}/max-channels"),
        broker.http("GET", f"user-limits/{user}"),
        broker.http("PUT", "user-limits/nobody/max-channels", {"value": 5}),
        broker.http("PUT", f"user-limits/{user}/nonsense", {"value": 5}),
    ]


def a_channel_that_is_closed_makes_room(broker: Broker) -> Record:
    user = broker.user("fenced", "", (".*", ".*", ".*"))
    broker.http("PUT", f"user-limits/{user}/max-channels", {"value": 2})
    peer = broker.peer(user=user, password=user)
    second = peer.beside(2)
    closed = second.close_channel()
    time.sleep(1)  # RabbitMQ counts what was closed a moment later
    return [second.opened, closed, peer.beside(3).opened]


# ---- connections that an operator ends ----------------------------------------------------------------------------


def a_connection_that_is_not_there_is_closed(broker: Broker) -> Record:
    """A pid of the right form is never an error; another form is."""
    return [
        broker.ctl("close_connection", "<rabbit@localhost.1.2.3>", "enough")["status"],
        broker.ctl("close_connection", "nonsense", "enough")["status"],
        broker.ctl("close_connection", "<0.1.2>", "enough")["status"],
        broker.ctl("close_connection", "<0.1.2>"),
    ]


def a_connection_is_closed_by_its_pid(broker: Broker) -> Record:
    user = broker.user("fenced", "", (".*", ".*", ".*"))
    peer = broker.peer(user=user, password=user)
    rows = broker.ctl("list_connections", "-s", "user", "pid")["output"].splitlines()
    pid = next(row.split("\t")[1] for row in rows if row.startswith(user))
    unquoted = broker.ctl("close_connection", pid, "enough", "of", "it")["status"]
    closed = [unquoted, broker.ctl("close_connection", pid, "enough of it")["status"]]
    told = peer.take(1)
    return [closed, told, broker.ctl("close_connection", pid, "again")["status"]]


def all_connections_of_a_vhost_are_closed(broker: Broker) -> Record:
    vhost, peer = broker.inside("ended")
    done = broker.ctl("close_all_connections", "-p", vhost, "enough")
    return [done, peer.take(1)]
