"""A full disk: the alarm has its cause, and whoever waits is told, at once or within half a second."""

from __future__ import annotations

from pika import spec

from burrowmq.broker.node.full_disk import TELL_AGAIN_S, TOLD_AT_ONCE, FullDisk
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.wire_client import publish_bytes

PERSISTENT = spec.BasicProperties(delivery_mode=2)


class World:
    """A broker and its full disk."""

    def __init__(self) -> None:
        self.bench = BrokerBench()
        self.full = FullDisk(
            self.bench.alarms,
            self.bench.sessions,
            self.bench.scheduler,
            lambda: "0.qi: pwrite failed",
        )
        self.bench.queue("q", durable=True)

    def client(self, **capabilities: bool) -> Client:
        client = self.bench.connect(1, **capabilities)
        client.call(1, spec.Confirm.Select())
        return client

    def change(self, is_full: bool) -> None:
        self.full.changed(is_full)
        self.bench.run()


def names(client: Client) -> list[str]:
    return [type(method).__name__ for _, method in client.read()]


def publish(client: Client) -> None:
    client.send(publish_bytes(1, "", "q", b"x", properties=PERSISTENT))


def test_who_waits_is_told_at_once_and_goes_on_being_read():
    world = World()
    publisher = world.client(**{"connection.blocked": True})
    silent, idle = world.client(), world.client(**{"connection.blocked": True})
    for client in (publisher, silent):
        publish(client)
    world.change(True)
    assert (names(publisher), names(silent), names(idle)) == (["Blocked"], [], [])
    assert world.bench.alarms.causes == {"store": "0.qi: pwrite failed"}
    assert not publisher.pauses
    publish(publisher)
    assert (set(publisher.pauses), names(publisher)) == ({"alarm"}, [])  # it was told
    world.change(False)
    world.bench.commit()
    world.bench.commit()
    assert names(publisher) == ["Unblocked", "Ack", "Ack"]
    assert (names(silent), names(idle)) == (["Ack"], [])


def test_who_begins_to_wait_is_told_too():
    world = World()
    world.change(True)
    client = world.client(**{"connection.blocked": True})
    assert client.call(1, spec.Queue.Declare(queue="r", durable=True)) == []
    world.bench.loop.advance(TELL_AGAIN_S)
    assert names(client) == ["Blocked"]
    world.bench.loop.advance(3 * TELL_AGAIN_S)
    assert names(client) == []
    world.change(False)
    world.bench.commit()
    assert names(client) == ["Unblocked", "DeclareOk"]
    world.bench.loop.advance(3 * TELL_AGAIN_S)
    assert names(client) == []


def test_many_are_told_a_part_at_a_time():
    world = World()
    told: list[object] = []

    class Told:
        def tell_blocked(self) -> None:
            told.append(self)

    full = FullDisk(
        world.bench.alarms,
        [Told() for _ in range(2 * TOLD_AT_ONCE + 1)],  # type: ignore[misc]
        world.bench.scheduler,
        str,
    )
    full.changed(True)
    assert len(told) == TOLD_AT_ONCE
    world.bench.loop.advance(0.1)
    assert len(told) == 2 * TOLD_AT_ONCE + 1
