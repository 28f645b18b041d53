"""Shovels: what parameters are refused, what is moved how, status and commands; RabbitMQ has its plugin enabled.

Each scenario has a virtual host of its own. Both ends are in the node unless the scenario says otherwise.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from tests.differential.broker import Broker
from tests.differential.peer import wait_for

Record = Any
BESIDE_OTHERS = 2
GOOD = ("src-uri", "src-queue", "dest-uri", "dest-queue")
TEXTS = (
    "src-exchange-key",
    "src-queue",
    "dest-exchange-key",
    "dest-queue",
    "ack-mode",
)


class _World:
    """A virtual host with a shovel's queues."""

    def __init__(self, broker: Broker, word: str) -> None:
        self.broker = broker
        self.vhost, self.peer = broker.inside(word)
        self.peer.queue("a", durable=True)
        self.peer.queue("b", durable=True)

    def path(self, name: str = "s") -> str:
        return f"parameters/shovel/{quote(self.vhost, '')}/{name}"

    def put(self, name: str = "s", *, without: tuple[str, ...] = (), **value: Any) -> Record:
        here = f"amqp:///{quote(self.vhost, '')}"
        good = dict(zip(GOOD, (here, "a", here, "b"), strict=True))
        given: dict[str, Any] = {key: each for key, each in good.items() if key not in without}
        given |= {key.replace("_", "-"): each for key, each in value.items()}
        status, body = self.broker.http("PUT", self.path(name), {"value": given})
        self.broker.also(self.broker.http, "DELETE", self.path(name))
        return status, body if status != 400 else body["reason"]

    def rows(self) -> list[Any]:
        found = self.broker.http("GET", "shovels")[1]
        return [row for row in found if row["vhost"] == self.vhost]

    def wait_running(self) -> Any:
        return wait_for(
            self.rows, lambda rows: any(row["state"] == "running" for row in rows), 30.0
        )[0]

    def wait_gone(self) -> Record:
        wait_for(self.rows, lambda rows: not rows, 30.0)
        return self.broker.http("GET", self.path())[0]

    def moved(self, queue: str, count: int) -> list[Record]:
        """What has arrived, each with exchange, key, properties and body."""
        self.peer.wait_ready(queue, count)
        return [self.peer.get(queue) for _ in range(count)]


def _refused(broker: Broker, word: str, *values: dict[str, Any], **more: Any) -> Record:
    world = _World(broker, word)
    return [world.put(**value, **more) for value in values]


def parameters_without_an_end(broker: Broker) -> Record:
    world = _World(broker, "ends")
    return [
        world.put(without=GOOD),
        world.put(without=("src-uri",)),
        world.put(without=("src-queue",)),
        world.put(without=("dest-uri", "src-queue")),
    ]


def parameters_with_both_of_two(broker: Broker) -> Record:
    values: list[dict[str, Any]] = [
        {"src_exchange": "e"},
        {"dest_exchange": "e"},
        {"src_exchange": "e", "dest_exchange": "e", "ack_mode": "no-ack", "delete_after": 4},
    ]
    return _refused(broker, "both", *values)


def parameters_that_are_no_texts(broker: Broker) -> Record:
    return _refused(broker, "texts", *({key: 5} for key in TEXTS))


def parameters_that_are_no_numbers(broker: Broker) -> Record:
    keys = ("reconnect-delay", "prefetch-count", "src-prefetch-count")
    return _refused(broker, "numbers", *({key: value} for key in keys for value in ("x", True, [])))


def parameters_that_are_no_booleans(broker: Broker) -> Record:
    keys = ("add-forward-headers", "dest-add-forward-headers", "dest-add-timestamp-header")
    return _refused(broker, "booleans", *({key: value} for key in keys for value in ("x", 1)))


def limits_that_are_none(broker: Broker) -> Record:
    values: list[dict[str, Any]] = [{"delete-after": "x"}, {"src-delete-after": -1}]
    values += [{"src-delete-after": True}, {"src-delete-after": 5, "ack-mode": "no-ack"}]
    return _refused(broker, "limits", *values)


def properties_that_are_none(broker: Broker) -> Record:
    values = [
        {"publish-properties": "x"},
        {"dest-publish-properties": {"bogus": 3, "delivery_mode": "q", "headers": 5, "app_id": 5}},
        {"dest-publish-properties": {"cluster_id": 5, "user_id": 5, "type": 5, "priority": "x"}},
    ]
    return _refused(broker, "properties", *values)


def uris_that_are_none(broker: Broker) -> Record:
    uris = [
        "http://x",
        5,
        ["amqp://", 5],
        "nonsense",
        "amqp://u:p@h:99999/v",
        "amqp://h/a/b",
        "amqp:///nov",
        ["http://a", "amqp:///nov"],
    ]
    return _refused(broker, "uris", *({"src-uri": uri} for uri in uris))


def unknown_keys_and_modes(broker: Broker) -> Record:
    values: list[dict[str, Any]] = [
        {"bogus": 1},
        {"ack-mode": "zz"},
        {"ack-mode": "no-ack", "z": []},
    ]
    return _refused(broker, "unknown", *values)


def without_a_virtual_host_it_is_the_default_one(broker: Broker) -> Record:
    world = _World(broker, "default")
    peer = broker.peer()
    queue, here = broker.own("default"), f"amqp:///{quote(world.vhost, '')}"
    peer.queue(queue, durable=True)
    peer.fill(queue, b"1")
    found = world.put(src_uri="amqp://", src_queue=queue, dest_uri=here)
    return [found, world.moved("b", 1)]


def set_get_and_clear(broker: Broker) -> Record:
    world = _World(broker, "life")
    found = [
        world.put(),
        world.put(),
        broker.http("GET", world.path()),
        world.put(src_prefetch_count=5),
        broker.http("GET", f"parameters/shovel/{quote(world.vhost, '')}"),
    ]
    world.wait_running()
    found += [broker.http("DELETE", world.path()), broker.http("DELETE", world.path())]
    return [*found, world.wait_gone()]


def _move(broker: Broker, word: str, **value: Any) -> Record:
    world = _World(broker, word)
    for body in (b"1", b"2", b"3"):
        world.peer.fill("a", body, headers={"h": 1}, delivery_mode=2, correlation_id="c")
    found = world.put(**value)
    return [found, world.moved("b", 3), world.peer.ready("a")]


def moved_when_confirmed(broker: Broker) -> Record:
    return _move(broker, "confirm")


def moved_when_published(broker: Broker) -> Record:
    return _move(broker, "publish", ack_mode="on-publish")


def moved_without_acks(broker: Broker) -> Record:
    return _move(broker, "no-ack", ack_mode="no-ack")


def moved_over_sockets(broker: Broker) -> Record:
    place = broker.place
    uri = f"amqp://guest:guest@127.0.0.1:{place.amqp_port}/{{}}?heartbeat=5"
    world = _World(broker, "sockets")
    uri = uri.format(quote(world.vhost, ""))
    world.peer.fill("a", b"1", b"2")
    found = world.put(src_uri=[uri], dest_uri=uri)
    return [found, world.moved("b", 2)]


def with_properties_of_the_destination_s(broker: Broker) -> Record:
    properties = {"app_id": "me", "delivery_mode": 1, "content_type": "text/plain", "priority": 3}
    return _move(broker, "own", dest_publish_properties=properties)


def with_the_way_in_a_header(broker: Broker) -> Record:
    world = _World(broker, "way")
    for headers in ({}, {"x-shovelled": [{"z": 1}]}, {"x-shovelled": "text"}):
        world.peer.fill("a", b"x", headers=headers)
    found = [world.put(dest_add_forward_headers=True), world.moved("b", 3)]
    text = json.dumps(found[1], default=str)
    return [found[0], text.count("shovelled-by"), [_without_name(each) for each in found[1]]]


def _without_name(event: Record) -> Record:
    """The cluster's name is the one thing in the header that differs."""
    headers = event["properties"]["headers"]
    for entry in headers.get("x-shovelled", []):
        if isinstance(entry, dict):
            entry.pop("shovelled-by", None)
    return event


def to_an_exchange(broker: Broker) -> Record:
    world = _World(broker, "exchange")
    world.peer.bind("b", "amq.direct", "k")
    world.peer.fill("a", b"1")
    found = world.put(without=("dest-queue",), dest_exchange="amq.direct", dest_exchange_key="k")
    return [found, world.moved("b", 1)]


def to_where_the_message_went(broker: Broker) -> Record:
    world = _World(broker, "same")
    world.peer.bind("b", "amq.direct", "k")
    world.peer.bind("a", "amq.fanout")
    world.peer.publish("amq.fanout", "k", b"1")
    found = world.put(without=("dest-queue",), dest_exchange="amq.direct")
    return [found, world.moved("b", 1)]


def to_nowhere(broker: Broker) -> Record:
    world = _World(broker, "nowhere")
    world.peer.fill("a", b"1", b"2")
    found = world.put(without=("dest-queue",), dest_exchange="amq.direct", dest_exchange_key="n")
    return [found, world.peer.wait_ready("a", 0), world.wait_running()["state"]]


def from_an_exchange(broker: Broker) -> Record:
    world = _World(broker, "from")
    found = world.put(without=("src-queue",), src_exchange="amq.topic", src_exchange_key="x.*")
    row = world.wait_running()
    world.peer.publish("amq.topic", "x.y", b"1")
    world.peer.publish("amq.topic", "y", b"2")
    return [found, {key: row[key] for key in row if key.startswith("src")}, world.moved("b", 1)]


def queues_that_are_not_there_are_declared(broker: Broker) -> Record:
    world = _World(broker, "made")
    found = world.put(
        src_queue="c", dest_queue="d", src_queue_args={"x-max-length": 9}, dest_queue_args={}
    )
    world.wait_running()
    path = f"queues/{quote(world.vhost, '')}"
    return [
        found,
        [broker.fields(f"{path}/{each}", "durable", "auto_delete", "arguments") for each in "cd"],
    ]


def queues_that_are_there_stay_what_they_are(broker: Broker) -> Record:
    world = _World(broker, "kept")
    found = world.put(src_queue_args={"x-max-length": 9}, dest_queue_args={"x-max-length": 9})
    return [found, world.wait_running()["state"]]


def what_the_destination_refuses(broker: Broker) -> Record:
    world = _World(broker, "refused")
    dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    world.peer.queue("limited", dead, durable=True)
    world.peer.queue("dead", durable=True)
    world.peer.queue("full", {"x-max-length": 0, "x-overflow": "reject-publish"}, durable=True)
    world.peer.fill("limited", b"1", b"2")
    found = world.put(src_queue="limited", dest_queue="full", src_delete_after="queue-length")
    gone = world.wait_gone()
    left = world.peer.wait_ready("limited", 2)
    return [found, gone, left, world.peer.ready("dead"), world.peer.ready("full")]


def _limited(broker: Broker, word: str, **value: Any) -> Record:
    world = _World(broker, word)
    world.peer.fill("a", b"1", b"2", b"3", b"4", b"5")
    found = world.put(**value)
    gone = world.wait_gone()
    return [found, gone, world.peer.wait_ready("a", 5 - world.peer.ready("b"))]


def gone_after_so_many(broker: Broker) -> Record:
    return _limited(broker, "three", src_delete_after=3)


def gone_after_none(broker: Broker) -> Record:
    return _limited(broker, "zero", src_delete_after=0)


def gone_after_what_was_there(broker: Broker) -> Record:
    return _limited(broker, "length", src_delete_after="queue-length")


def gone_after_what_was_there_without_acks(broker: Broker) -> Record:
    return _limited(broker, "length-no-ack", src_delete_after="queue-length", ack_mode="no-ack")


def the_row_of_one_that_runs(broker: Broker) -> Record:
    world = _World(broker, "row")
    world.put(dest_add_forward_headers=True)
    row = world.wait_running()
    row["timestamp"] = len(row["timestamp"])
    return row


def restarted_and_deleted(broker: Broker) -> Record:
    world = _World(broker, "restart")
    world.put()
    world.wait_running()
    one = f"shovels/vhost/{quote(world.vhost, '')}"
    found = [broker.http("DELETE", f"{one}/{each}/restart")[0] for each in ("s", "nx")]
    world.wait_running()
    found += [broker.http("DELETE", f"{one}/{each}")[0] for each in ("nx", "s")]
    return [*found, broker.http("GET", "shovels/vhost/nov")[0]]


def commands_about_one_that_is_not_there(broker: Broker) -> Record:
    vhost = broker.inside("commands")[0]
    return [broker.ctl("-p", vhost, each, "nx") for each in ("restart_shovel", "delete_shovel")]


def _rows_of(broker: Broker, vhost: str) -> Record:
    output = broker.ctl("-q", "shovel_status", "--formatter", "json")["output"]
    rows = [row for row in json.loads(output) if row["vhost"] == vhost]
    for row in rows:
        row["last_changed"] = len(row["last_changed"])
    return rows


def the_status_command(broker: Broker) -> Record:
    world = _World(broker, "status")
    world.put(without=("dest-queue",), dest_exchange="amq.direct")
    world.wait_running()
    return _rows_of(broker, world.vhost)


def commands_about_one(broker: Broker) -> Record:
    world = _World(broker, "command")
    world.put()
    world.wait_running()
    return [
        broker.ctl("-p", world.vhost, "restart_shovel", "s"),
        world.wait_running()["state"],
        broker.ctl("-p", world.vhost, "delete_shovel", "s"),
        world.wait_gone(),
    ]
