"""Who may do what: permissions, topic permissions, limits of users and virtual hosts, what closes connections."""

from __future__ import annotations

import time
from typing import Any

from pika import spec

from tests.differential.broker import Broker
from tests.differential.peer import DEADLINE_S, Peer

Record = Any


def _limited(broker: Broker, *permissions: str, tags: str = "") -> Peer:
    user = broker.user("limited", tags, permissions)
    return broker.peer(user=user, password=user)


def _prepared(broker: Broker) -> Peer:
    peer = broker.peer()
    peer.queue("q")
    peer.exchange("x", "topic")
    peer.bind("q", "x", "k")
    return peer


def nothing_may_be_declared_without_configure(broker: Broker) -> Record:
    peer = _limited(broker, "^mine", ".*", ".*")
    return [
        peer.declare("q"),
        peer.declare("mine.q"),
        peer.exchange("x", "direct"),
        peer.exchange("mine.x", "direct"),
        peer.declare(""),
    ]


def nothing_may_be_deleted_without_configure(broker: Broker) -> Record:
    _prepared(broker)
    peer = _limited(broker, "^$", ".*", ".*")
    return [
        peer.delete("q"),
        peer.delete_exchange("x"),
        peer.delete("none"),
        peer.delete_exchange("none"),
    ]


def passive_declares_need_no_permission(broker: Broker) -> Record:
    _prepared(broker)
    peer = _limited(broker, "", "", "")
    return [peer.passive("q"), peer.exchange("x", passive=True), peer.passive("none")]


def nothing_may_be_read_without_read(broker: Broker) -> Record:
    _prepared(broker)
    peer = _limited(broker, ".*", ".*", "^$")
    return [
        peer.get("q"),
        peer.consume("q"),
        peer.purge("q"),
        peer.get("none"),
        peer.bind("q", "x", "k"),
    ]


def nothing_may_be_written_without_write(broker: Broker) -> Record:
    _prepared(broker)
    peer = _limited(broker, ".*", "^$", ".*")
    outcome = []
    for exchange in ("x", "", "none", "amq.fanout"):
        peer.publish(exchange, "k", b"1")
        outcome.append(peer.sync())
    return [
        *outcome,
        peer.bind("q", "x", "k"),
        peer.unbind("q", "x", "k"),
        peer.bind_exchange("x", "x"),
    ]


def the_default_exchange_is_called_amq_default(broker: Broker) -> Record:
    _prepared(broker)
    peer = _limited(broker, ".*", "^amq\\.default$", ".*")
    peer.publish("", "q", b"1")
    allowed = peer.sync()
    peer.publish("amq.direct", "q", b"1")
    return [allowed, peer.sync()]


def dead_letter_exchanges_need_write_and_read(broker: Broker) -> Record:
    peer = _limited(broker, ".*", "^mine", "^mine")
    arguments = {"x-dead-letter-exchange": "dlx"}
    return [
        peer.declare("mine.q", arguments),
        peer.declare("other", {"x-dead-letter-exchange": "mine.dlx"}),
        peer.declare("mine.q", {"x-dead-letter-exchange": "mine.dlx"}),
    ]


def alternate_exchanges_need_write_and_read(broker: Broker) -> Record:
    peer = _limited(broker, ".*", "^mine", "^mine")
    return [
        peer.exchange("mine.x", "direct", {"alternate-exchange": "ae"}),
        peer.exchange("other", "direct", {"alternate-exchange": "mine.ae"}),
        peer.exchange("mine.x", "direct", {"alternate-exchange": "mine.ae"}),
    ]


def exchange_bindings_need_write_and_read(broker: Broker) -> Record:
    first = _prepared(broker)
    first.exchange("mine.x", "fanout")
    peer = _limited(broker, ".*", "^mine", "^x$")
    return [
        peer.bind_exchange("mine.x", "x"),
        peer.bind_exchange("x", "mine.x"),
        peer.bind_exchange("mine.x", "mine.x"),
        peer.unbind_exchange("x", "x"),
    ]


def patterns_are_searched_not_matched(broker: Broker) -> Record:
    peer = _limited(broker, "b", ".*", ".*")
    return [peer.declare("abc"), peer.declare("xyz")]


def topic_permissions_on_publish(broker: Broker) -> Record:
    user = broker.own("limited")
    _prepared(broker)
    peer = _limited(broker, ".*", ".*", ".*")
    body = {"exchange": "x", "write": "^k\\.{username}$", "read": ".*"}
    set_up = broker.http("PUT", f"topic-permissions/%2F/{user}", body)
    time.sleep(0.05)
    outcome = []
    for exchange, key in (
        ("x", f"k.{user}"),
        ("x", "other"),
        ("amq.topic", "other"),
        ("amq.direct", "other"),
    ):
        peer.publish(exchange, key, b"1")
        outcome.append(peer.sync())
    return [set_up, outcome]


def topic_permissions_on_bind(broker: Broker) -> Record:
    user = broker.own("limited")
    _prepared(broker)
    peer = _limited(broker, ".*", ".*", ".*")
    broker.http(
        "PUT",
        f"topic-permissions/%2F/{user}",
        {"exchange": "x", "write": ".*", "read": "^{vhost}ok"},
    )
    return [
        peer.bind("q", "x", "/ok.1"),
        peer.bind("q", "x", "other"),
        peer.unbind("q", "x", "other"),
        peer.bind_exchange("amq.fanout", "x", "other"),
    ]


def permissions_over_http(broker: Broker) -> Record:
    user = broker.user("limited", "", ("^a", "b", ""))
    return [
        broker.http("GET", f"users/{user}/permissions"),
        broker.http("GET", f"permissions/%2F/{user}"),
        broker.http("PUT", f"permissions/nope/{user}", {"configure": "", "write": "", "read": ""}),
        broker.http("PUT", "permissions/%2F/nobody", {"configure": "", "write": "", "read": ""}),
        broker.http("PUT", f"permissions/%2F/{user}", {"configure": "", "write": ""}),
        broker.http("PUT", f"permissions/%2F/{user}", {"configure": "(", "write": "", "read": ""}),
        broker.http("DELETE", f"permissions/%2F/{user}"),
        broker.http("GET", f"permissions/%2F/{user}"),
    ]


def tags_open_the_management_interface(broker: Broker) -> Record:
    outcome = {}
    for tags in ("", "management", "policymaker", "monitoring", "administrator"):
        user = broker.user("limited", tags, (".*", ".*", ".*"))
        outcome[tags] = [
            broker.http("GET", path, user=user, password=user)[0]
            for path in ("whoami", "queues", "users", "nodes", "policies", "connections", "vhosts")
        ]
    return outcome


def whoami(broker: Broker) -> Record:
    user = broker.user("limited", "monitoring,mine")
    wrong = broker.http("GET", "whoami", user=user, password="wrong")
    return [broker.http("GET", "whoami", user=user, password=user), wrong]


def users_over_http(broker: Broker) -> Record:
    user = broker.user("limited", "management")
    found = broker.fields(f"users/{user}", "name", "tags", "hashing_algorithm", "limits")
    return [
        found,
        broker.http("GET", "users/nobody"),
        broker.http("PUT", f"users/{broker.own('limited2')}", {"tags": ""}),
        broker.http("PUT", f"users/{broker.own('limited2')}", {"password": "x"}),
        broker.http("DELETE", "users/nobody"),
    ]


def a_deleted_user_is_disconnected(broker: Broker) -> Record:
    user = broker.own("limited")
    peer = _limited(broker, ".*", ".*", ".*")
    broker.http("DELETE", f"users/{user}")
    return peer.take(1)


def a_deleted_vhost_closes_its_connections(broker: Broker) -> Record:
    """RabbitMQ has two texts for it: "is down" when its supervisor is there before what deletes ("is deleted", as ours)."""
    vhost, peer = broker.inside("v")
    reply = broker.http("DELETE", f"vhosts/{vhost}")
    return [reply, _closed(peer), broker.link(vhost=vhost).refusal]


def _closed(peer: Peer, cancelled: int = 0) -> list[Any]:
    """The consumers that were cancelled, and the close behind them."""
    events = peer.take(cancelled + 1)
    closed = events[-1]
    closed["reply_text"] = str(closed["reply_text"]).replace("' is down", "' is deleted")
    return [sorted(str(each.get("consumer_tag", each)) for each in events[:-1]), closed]


def a_deleted_vhost_cancels_its_consumers_first(broker: Broker) -> Record:
    vhost, peer = broker.inside("v")
    for queue, options in (("q", {}), ("r", {"durable": True}), ("s", {"exclusive": True})):
        peer.queue(queue, **options)
        peer.consume(queue, queue)
    broker.http("DELETE", f"vhosts/{vhost}")
    return _closed(peer, 3)


def a_deleted_vhost_cancels_nobody_who_does_not_understand_it(broker: Broker) -> Record:
    vhost, _ = broker.inside("v")
    link = broker.link(vhost=vhost, capabilities={})
    peer = Peer(link, 1, set())
    peer.queue("q")
    peer.consume("q", "a")
    broker.http("DELETE", f"vhosts/{vhost}")
    return _closed(peer)


def a_connection_closed_over_http(broker: Broker) -> Record:
    user = broker.user("limited", "", (".*", ".*", ".*"))
    peer = broker.peer(user=user, password=user)
    rows = broker.wait_http(
        "connections", lambda found: any(row.get("user") == user for row in found)
    )
    names = [row["name"] for row in rows if row.get("user") == user]
    reply = broker.http("DELETE", "connections/" + names[0].replace(" ", "%20").replace(">", "%3E"))
    return [reply, peer.take(1)]


def max_connections_of_a_user(broker: Broker) -> Record:
    user = broker.user("limited", "", (".*", ".*", ".*"))
    made = broker.http("PUT", f"user-limits/{user}/max-connections", {"value": 1})
    found = broker.http("GET", f"user-limits/{user}")
    first = broker.link(user=user, password=user).refusal
    broker.wait_connected("user", user)
    second = broker.link(user=user, password=user).refusal
    gone = broker.http("DELETE", f"user-limits/{user}/max-connections")
    return [
        made,
        found,
        first,
        second,
        gone,
        broker.link(user=user, password=user).refusal,
    ]


def max_connections_of_none(broker: Broker) -> Record:
    user = broker.user("limited", "", (".*", ".*", ".*"))
    broker.http("PUT", f"user-limits/{user}/max-connections", {"value": 0})
    first = broker.link(user=user, password=user).refusal
    broker.http("PUT", f"user-limits/{user}/max-connections", {"value": -1})
    return [first, broker.link(user=user, password=user).refusal]


def max_channels_of_a_user(broker: Broker) -> Record:
    """RabbitMQ's text has the node where the user should be."""
    user = broker.user("limited", "", (".*", ".*", ".*"))
    broker.http("PUT", f"user-limits/{user}/max-channels", {"value": 1})
    client = broker.link(user=user, password=user)
    client.wire.send_method(1, spec.Channel.Open())
    first = client.answer(1, spec.Channel.OpenOk)
    broker.wait_http("channels", lambda rows: any(row.get("user") == user for row in rows))
    client.wire.send_method(2, spec.Channel.Open())
    events = []
    while (got := client.read(DEADLINE_S)) is not None and got[1]["method"] != "connection.close":
        if got[1]["method"] == "socket closed":
            break
        events.append(got[1])
    return [first, [] if got is None else got[1]]


def max_connections_of_a_vhost(broker: Broker) -> Record:
    vhost = broker.vhost("v")
    broker.permit("guest", ".*", ".*", ".*", vhost)
    made = broker.http("PUT", f"vhost-limits/{vhost}/max-connections", {"value": 1})
    first = broker.link(vhost=vhost).refusal
    broker.wait_connected("vhost", vhost)
    second = broker.link(vhost=vhost).refusal
    return [made, broker.http("GET", f"vhost-limits/{vhost}"), first, second]


def limits_that_are_not_valid(broker: Broker) -> Record:
    vhost = broker.vhost("v")
    user = broker.user("limited")
    return [
        broker.http("PUT", f"vhost-limits/{vhost}/max-queues", {"value": "x"}),
        broker.http("PUT", f"vhost-limits/{vhost}/foo", {"value": 1}),
        broker.http("PUT", "vhost-limits/nope/max-queues", {"value": 1}),
        broker.http("PUT", f"user-limits/{user}/max-connections", {"value": "x"}),
        broker.http("PUT", f"user-limits/{user}/foo", {"value": 1}),
        broker.http("PUT", f"vhost-limits/{vhost}/max-queues", {}),
    ]


def vhosts_over_http(broker: Broker) -> Record:
    vhost = broker.vhost("v", description="mine", tags="a,b")
    names = ("name", "description", "tags", "tracing", "metadata")
    return [
        broker.fields(f"vhosts/{vhost}", *names),
        broker.http("GET", "vhosts/nope"),
        broker.http("DELETE", "vhosts/nope"),
        broker.http("GET", f"vhosts/{vhost}/permissions"),
        broker.fields("vhosts/%2F", "name", "tracing"),
    ]


def a_vhost_has_its_own_names(broker: Broker) -> Record:
    vhost = broker.vhost("v")
    broker.permit("guest", ".*", ".*", ".*", vhost)
    here, there = broker.peer(), broker.peer(vhost=vhost)
    here.queue("q")
    missing = there.passive("q")
    predeclared = there.exchange("amq.topic", "topic", durable=True)
    rows = broker.http("GET", f"exchanges/{vhost}")[1]
    return [
        missing,
        predeclared,
        sorted((row["name"], row["type"], row["internal"]) for row in rows),
    ]


def permissions_that_are_withdrawn(broker: Broker) -> Record:
    """New connections are refused, those that are there go on until they ask for something."""
    user = broker.own("limited")
    peer = _limited(broker, ".*", ".*", ".*")
    peer.queue("q")
    broker.http("DELETE", f"permissions/%2F/{user}")
    refused = broker.link(user=user, password=user).refusal
    broker.forget("queue", "q")
    return refused
