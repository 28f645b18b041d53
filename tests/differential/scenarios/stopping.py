"""stop_app and start_app: what they print, what clients are told, what a stopped node answers, what is kept.

RabbitMQ's HTTP API is no part of it: there it is closed with the application, here it answers 503.
"""

from __future__ import annotations

import socket
from typing import Any

from tests.differential.broker import Broker
from tests.differential.peer import Peer

Record = Any
NODES_APART = True


def _stop(broker: Broker) -> Record:
    """Stop it; whatever happens, it runs again afterwards, with the ticks that other scenarios count on."""
    broker.also(
        broker.ctl, "eval", "application:set_env(rabbit, channel_tick_interval, 500)."
    )  # refused by ours
    broker.also(broker.ctl, "start_app")
    return broker.ctl("stop_app")


def _cycle(broker: Broker, *peers: Peer) -> Peer:
    for peer in peers:
        peer.link.close()
    _stop(broker)
    broker.ctl("start_app")
    return broker.peer()


def _accepts(broker: Broker) -> bool:
    try:
        socket.create_connection(("127.0.0.1", broker.place.amqp_port), 5).close()
    except ConnectionRefusedError:
        return False
    return True


def _asked(broker: Broker, *words: str) -> Record:
    """What a command says, without the usage behind an error: RabbitMQ's repeats the options of all commands."""
    found = broker.ctl(*words)
    return [found["status"], found["output"], found["error"].partition("\n\n")[0].strip()]


def both_are_harmless_twice(broker: Broker) -> Record:
    return [
        broker.ctl("start_app"),
        _stop(broker),
        broker.ctl("stop_app"),
        broker.ctl("-q", "stop_app"),
        broker.ctl("start_app"),
        broker.ctl("start_app", "-q"),
        broker.peer().sync(),
    ]


def with_an_argument_too_many(broker: Broker) -> Record:
    return [_asked(broker, "stop_app", "now"), _asked(broker, "start_app", "now")]


def clients_are_told_and_nobody_comes_in(broker: Broker) -> Record:
    peer, other = broker.peer(), broker.peer(capabilities={})
    peer.queue("q")
    peer.consume("q", "t")
    _stop(broker)
    told = [peer.take(1), other.take(1), _accepts(broker)]
    broker.ctl("start_app")
    return [told, _accepts(broker), broker.peer().sync()]


def commands_that_need_the_application(broker: Broker) -> Record:
    _stop(broker)
    return [
        _asked(broker, *words)
        for words in (
            ("status",),
            ("cluster_status",),
            ("list_queues",),
            ("list_queues", "name", "messages"),
            ("-q", "list_users"),
            ("list_connections", "--formatter", "json"),
            ("list_policies", "-p", "/"),
            ("add_user", "a", "b"),
            ("authenticate_user", "guest", "guest"),
            ("set_policy", "p", "^a", '{"max-length":1}'),
            ("purge_queue", "q"),
            ("close_all_connections", "why"),
            ("set_vm_memory_high_watermark", "0.5"),
            ("report",),
        )
    ]


def commands_that_do_not(broker: Broker) -> Record:
    _stop(broker)
    stopped = [
        _asked(broker, *words)
        for words in (("-q", "ping"), ("eval", "node()."), ("await_startup", "--timeout", "2"))
    ]
    broker.ctl("start_app")
    return [stopped, _asked(broker, "-q", "ping"), _asked(broker, "await_startup")]


def what_is_kept(broker: Broker) -> Record:
    peer = broker.peer()
    kinds: dict[str, dict[str, Any]] = {
        "durable": {"durable": True},
        "transient": {},
        "lazy": {"durable": True, "arguments": {"x-queue-mode": "lazy"}},
        "levels": {"durable": True, "arguments": {"x-max-priority": 3}},
    }
    for name, options in kinds.items():
        peer.queue(name, **options)
        for body, mode in ((b"1", 2), (b"gone", 1), (b"2", 2), (b"3", 2)):
            peer.publish("", name, body, delivery_mode=mode)
        peer.sync(name)
    peer.declare("exclusive", durable=True, exclusive=True)
    peer.get("durable", no_ack=False)
    later = _cycle(broker, peer)
    found = []
    for name in kinds:
        row = [later.passive(name)]
        while (event := later.get(name))["method"] == "basic.getok":
            row.append([event["body"], event["redelivered"]])
        found.append(row)
    return [found, later.passive("exclusive")]


def over_and_over(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", durable=True)
    for number in range(3):
        peer.publish("", "q", b"%d" % number, delivery_mode=2)
        peer.sync("q")
        peer = _cycle(broker, peer)
    return [peer.wait_ready("q", 3), peer.drain("q")]
