"""What the shovel plugin's own suite asks of a shovel, asked of each side's shovel with the other broker at its end.

Seven cases, after the plugin's dynamic shovels (by intent): from queue to queue; from exchange to exchange, with
another key; a link that is lost; another definition; one that deletes itself, in each ack mode; properties and headers;
validation. Each is run pushing (the source is the shovel's own node) and pulling, with RabbitMQ's plugin and with ours.
Covers: broker/shovel
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from tests.differential.broker import Broker, Place
from tests.differential.peer import Peer, wait_for

pytestmark = [pytest.mark.differential, pytest.mark.needs_server, pytest.mark.long]
WAIT_S = 60.0


class Ends:
    """A shovel in `own`, whose one end is there and whose other end is at `far`."""

    def __init__(self, own: Broker, far: Broker, way: str, name: str) -> None:
        self.own, self.name = own, name
        source, destination = (own, far) if way == "push" else (far, own)
        self.far = far
        self.source: Peer = source.peer()
        self.destination: Peer = destination.peer()
        away = f"amqp://guest:guest@127.0.0.1:{far.place.amqp_port}/%2F"
        self.uris = {"src-uri": "amqp://", "dest-uri": away}
        if way == "pull":
            self.uris = {"src-uri": away, "dest-uri": "amqp://"}
        self.src, self.dest = f"{name}-src", f"{name}-dest"
        self.source.queue(self.src, durable=True)
        self.destination.queue(self.dest, durable=True)

    @property
    def path(self) -> str:
        return f"parameters/shovel/%2F/{self.name}"

    def put(self, **value: Any) -> int:
        given = {**self.uris, "reconnect-delay": 1, **{k.replace("_", "-"): v for k, v in value.items()}}  # fmt: skip
        status: int = self.own.http("PUT", self.path, {"value": given})[0]
        return status

    def set(self, **value: Any) -> None:
        """Set it, and wait until it runs."""
        assert self.put(**value) in (201, 204)
        self.wait_running()

    def clear(self) -> None:
        self.own.http("DELETE", self.path)
        wait_for(self.state, lambda state: state is None, WAIT_S)

    def state(self) -> str | None:
        rows = self.own.http("GET", "shovels")[1]
        return next((row["state"] for row in rows if row["name"] == self.name), None)

    def wait_running(self) -> None:
        wait_for(self.state, lambda state: state == "running", WAIT_S)

    def expect(self, queue: str, *bodies: bytes) -> list[Any]:
        """These arrive at the destination, in that order and no others."""
        wait_for(lambda: self.destination.ready(queue), lambda ready: ready >= len(bodies), WAIT_S)
        got = [self.destination.get(queue) for _ in bodies]
        assert [each["body"] for each in got] == list(bodies)
        assert self.destination.ready(queue) == 0
        return got


def simple(ends: Ends) -> None:
    ends.set(src_queue=ends.src, dest_queue=ends.dest)
    ends.source.fill(ends.src, b"hello")
    ends.expect(ends.dest, b"hello")


def exchanges(ends: Ends) -> None:
    new_key = f"{ends.name}-new"
    ends.destination.bind(ends.dest, "amq.topic", ends.name)
    value = {"src_exchange": "amq.direct", "src_exchange_key": ends.name, "dest_exchange": "amq.topic"}  # fmt: skip
    ends.set(**value)
    ends.source.publish("amq.direct", ends.name, b"one")
    ends.expect(ends.dest, b"one")
    ends.clear()
    ends.destination.unbind(ends.dest, "amq.topic", ends.name)
    ends.destination.bind(ends.dest, "amq.topic", new_key)
    ends.set(**value, dest_exchange_key=new_key)
    ends.source.publish("amq.direct", ends.name, b"two")
    ends.expect(ends.dest, b"two")


def a_lost_link(ends: Ends) -> None:
    ends.set(src_queue=ends.src, dest_queue=ends.dest)
    ends.source.fill(ends.src, b"before")
    ends.expect(ends.dest, b"before")

    def links() -> list[str]:
        rows = ends.far.http("GET", "connections")[1]
        return [
            row["name"]
            for row in rows
            if ends.name in str((row.get("client_properties") or {}).get("connection_name"))
        ]

    (link,) = wait_for(links, lambda found: len(found) == 1, WAIT_S)
    ends.far.http("DELETE", f"connections/{quote(link, '')}")
    wait_for(links, lambda found: len(found) == 1 and found != [link], WAIT_S)
    ends.source.fill(ends.src, b"after")
    ends.expect(ends.dest, b"after")


def another_definition(ends: Ends) -> None:
    other = f"{ends.dest}-2"
    ends.destination.queue(other, durable=True)
    ends.set(src_queue=ends.src, dest_queue=ends.dest)
    ends.source.fill(ends.src, b"1")
    ends.expect(ends.dest, b"1")
    ends.set(src_queue=ends.src, dest_queue=other)
    ends.source.fill(ends.src, b"2")
    ends.expect(other, b"2")
    assert ends.destination.ready(ends.dest) == 0
    ends.clear()
    ends.source.fill(ends.src, b"3")
    assert ends.source.wait_ready(ends.src, 1) == 1
    assert ends.destination.ready(other) == 0


def one_that_deletes_itself(ends: Ends) -> None:
    bodies = [b"%d" % number for number in range(100)]
    for mode, limit, moved in (
        ("on-confirm", "queue-length", 100),
        ("on-confirm", 50, 50),
        ("on-publish", "queue-length", 100),
        ("on-publish", 50, 50),
        ("no-ack", "queue-length", 100),
    ):
        ends.source.fill(ends.src, *bodies)
        ends.source.wait_ready(ends.src, 100)
        more = {"ack_mode": mode, "src_delete_after": limit}
        assert ends.put(src_queue=ends.src, dest_queue=ends.dest, **more) == 201
        wait_for(lambda: ends.own.http("GET", ends.path)[0], lambda found: found == 404, WAIT_S)
        wait_for(ends.state, lambda state: state is None, WAIT_S)
        ends.expect(ends.dest, *bodies[:moved])
        ends.source.wait_ready(ends.src, 100 - moved)
        assert ends.source.drain(ends.src) == bodies[moved:]


def properties_and_headers(ends: Ends) -> None:
    ends.set(
        src_queue=ends.src,
        dest_queue=ends.dest,
        dest_publish_properties={"cluster_id": "x", "delivery_mode": 2},
        dest_add_forward_headers=True,
        dest_add_timestamp_header=True,
    )
    ends.source.fill(ends.src, b"hello", headers={"own": 1}, app_id="a")
    (got,) = ends.expect(ends.dest, b"hello")
    found = got["properties"]
    assert (found["cluster_id"], found["delivery_mode"], found["app_id"]) == ("x", 2, "a")
    headers = found["headers"]
    (entry,) = headers["x-shovelled"]
    assert (entry["src-queue"], entry["dest-queue"]) == (f"S:{ends.src}", f"S:{ends.dest}")
    assert {"own", "x-shovelled-timestamp"} < set(headers)


def validation(ends: Ends) -> None:
    good = {"src_queue": ends.src, "dest_queue": ends.dest}
    for bad in (
        {"src_uri": "derp"},
        {"src_uri": ["derp"]},
        {"src_exchange": "too"},
        {"prefetch_count": "three"},
        {"reconnect_delay": "three"},
        {"ack_mode": "whenever"},
        {"delete_after": "whenever"},
        {"delete_after": 1, "ack_mode": "no-ack"},
    ):
        assert ends.put(**{**good, **bad}) == 400, bad
    assert ends.own.http("GET", ends.path)[0] == 404
    assert ends.put(**good) == 201


CASES: tuple[Callable[[Ends], None], ...] = (
    simple,
    exchanges,
    a_lost_link,
    another_definition,
    one_that_deletes_itself,
    properties_and_headers,
    validation,
)


@pytest.fixture(params=["RabbitMQ", "BurrowMQ"])
def movers(request: pytest.FixtureRequest, places: tuple[Place, Place]) -> tuple[Place, Place]:
    """Whose shovel it is first, then the other broker."""
    return places if request.param == "RabbitMQ" else places[::-1]


@pytest.mark.parametrize("way", ["push", "pull"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_what_the_plugin_s_suite_asks(
    movers: tuple[Place, Place], way: str, case: Callable[[Ends], None]
) -> None:
    name = f"plugin-{movers[0].product}-{way}-{case.__name__}"
    own, far = Broker(movers[0], name), Broker(movers[1], name)
    ends = Ends(own, far, way, name)
    try:
        case(ends)
    finally:
        own.http("DELETE", ends.path)
        own.finish()
        far.finish()
