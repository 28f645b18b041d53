"""Links of both kinds to a node in this thread: its own session, and its socket.

Covers: broker/link/link.py, broker/link/local.py
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from burrowmq.broker.definitions.restore import EVERYTHING
from burrowmq.broker.link import connect, local
from burrowmq.broker.link.link import Link
from burrowmq.broker.link.uri import parse
from burrowmq.protocol import methods
from burrowmq.protocol.client.events import (
    ClientEvent,
    Confirmed,
    ConnectionEnded,
    DeliveryRun,
    ReplyReceived,
)
from burrowmq.protocol.codec import join_address
from burrowmq.protocol.properties import Properties, build
from tests.support.bench.node import NodeBench

MESSAGE = build(join_address(b"", b"q"), Properties(), b"x" * 1000)


class Owner:
    """Remembers what its link says, and wakes who waits for it."""

    def __init__(self) -> None:
        self.events: list[ClientEvent] = []
        self.drains = 0
        self.reasons: list[str] = []
        self._news = asyncio.Event()

    def received(self, link: Link, events: list[ClientEvent]) -> None:
        self.events += events
        self._news.set()

    def drained(self, link: Link) -> None:
        self.drains += 1
        self._news.set()

    def lost(self, link: Link, reason: str) -> None:
        self.reasons.append(reason)
        self._news.set()

    async def until(self, is_there: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not is_there():
                self._news.clear()
                await self._news.wait()

    def count(self) -> int:
        return sum(len(each.messages) for each in self.events if isinstance(each, DeliveryRun))

    def confirmed(self) -> int:
        return max(
            (each.last_seq for each in self.events if isinstance(each, Confirmed)), default=0
        )


class World:
    """A node, and links to it."""

    def __init__(self, bench: NodeBench) -> None:
        self.bench = bench
        self.owner = Owner()

    def run(self, work: Callable[[], Awaitable[None]]) -> None:
        async def whole() -> None:
            await work()

        self.bench.loop.run_until_complete(whole())

    async def open(self, uri: str) -> Link:
        opener = connect.Opener(open_session=self.bench.node.open_session)
        return await connect.open_link(opener, parse(uri, "/"), self.owner, "a link")

    async def on_channel(self, uri: str) -> Link:
        link = await self.open(uri)
        link.connection.send(1, methods.Channel.Open())
        link.connection.send(1, methods.Queue.Declare(queue="q"))
        link.connection.send(1, methods.Confirm.Select())
        link.flush()
        await self.owner.until(lambda: len(self.owner.events) == 3)
        assert all(isinstance(each, ReplyReceived) for each in self.owner.events)
        return link


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with NodeBench(tmp_path) as bench:
        yield World(bench)


def uris(world: World) -> dict[str, str]:
    return {"local": "amqp://", "tcp": f"amqp://127.0.0.1:{world.bench.port}"}


@pytest.mark.parametrize("kind", ["local", "tcp"])
def test_messages_go_there_and_come_back(world: World, kind: str) -> None:
    async def work() -> None:
        link = await world.on_channel(uris(world)[kind])
        owner = world.owner
        link.connection.publish(1, MESSAGE.address, [MESSAGE] * 500)
        link.flush()
        await owner.until(lambda: owner.confirmed() == 500)
        link.connection.send(1, methods.Basic.Consume(queue="q", consumer_tag="c"))
        link.flush()
        await owner.until(lambda: owner.count() == 500)
        link.connection.ack(1, 500, multiple=True)
        link.flush()
        link.close()
        await owner.until(lambda: bool(owner.reasons))
        assert isinstance(owner.events[-1], ConnectionEnded)

    world.run(work)
    assert world.bench.node.vhosts["/"].queues["q"].ready_count == 0
    assert not world.bench.node.sessions


@pytest.mark.parametrize("kind", ["local", "tcp"])
def test_an_owner_who_does_not_read_stops_the_deliveries(world: World, kind: str) -> None:
    async def work() -> None:
        world.bench.disk.free_bytes = 1 << 30
        link = await world.on_channel(uris(world)[kind])
        owner = world.owner
        body = build(join_address(b"", b"q"), Properties(), b"x" * 100_000)
        for _ in range(10):
            link.connection.publish(1, body.address, [body] * 20)
            link.flush()
            done = owner.confirmed() + 20
            await owner.until(lambda wanted=done: owner.confirmed() == wanted)  # type: ignore[misc] - bound
        link.pause_reading()
        link.connection.send(1, methods.Basic.Consume(queue="q", consumer_tag="c", no_ack=True))
        link.flush()
        await asyncio.sleep(0)
        (session,) = world.bench.node.sessions
        for _ in range(2000):
            await asyncio.sleep(0)
            if session.is_congested:
                break
        assert session.is_congested
        assert owner.count() < 200
        link.resume_reading()
        await owner.until(lambda: owner.count() == 200)
        link.abort()

    world.run(work)


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("amqp://127.0.0.1:{port}/nowhere", "NOT_ALLOWED - vhost nowhere not found"),
        ("amqp:///nowhere", "NOT_ALLOWED - vhost nowhere not found"),
        ("amqp://guest:wrong@127.0.0.1:{port}", "ACCESS_REFUSED - Login was refused"),
        ("amqp://nobody@", "ACCESS_REFUSED - Login was refused"),
        ("amqp://127.0.0.1:1", "Connection refused"),
        ("amqp://127.0.0.1:{port}?auth_mechanism=none", "no mechanism in common"),
        ("amqps://127.0.0.1:{port}?connection_timeout=300", "."),
        ("amqp://%FF:p%FF@127.0.0.1:{port}", "ACCESS_REFUSED - Login was refused"),
        ("amqp://%FF:%FF@127.0.0.1:{port}?auth_mechanism=amqplain", "ACCESS_REFUSED - Login"),
        ("amqp://%FF@", "ACCESS_REFUSED - Login was refused"),
        ("amqp://%FF:p@", "ACCESS_REFUSED - Login was refused"),
        ("amqp://127.0.0.1:{port}/%FF", "."),
        ("amqp:///%FF", "."),
        ("amqp://%FFhost", "."),
        ("amqp://a%00b", "."),
    ],
)
def test_why_a_link_cannot_be_opened_is_said(world: World, uri: str, text: str) -> None:
    async def work() -> None:
        with pytest.raises(connect.CannotConnect, match=text):
            await world.open(uri.format(port=world.bench.port))
        await asyncio.sleep(0.01)

    world.run(work)
    assert not world.owner.reasons


def test_certificates_on_a_disk_that_does_not_answer_hold_nobody_up(
    world: World, tmp_path: Path
) -> None:
    """The threads of the loop's executor waited for it: six links later no page of metrics was answered."""
    authorities = tmp_path / "ca.pem"
    os.mkfifo(authorities)

    async def work() -> None:
        for _ in range(40):
            with pytest.raises(connect.CannotConnect, match="timeout after 20 ms"):
                await world.open(
                    f"amqps://127.0.0.1?cacertfile={authorities}&connection_timeout=20"
                )
        assert await asyncio.wait_for(asyncio.to_thread(divmod, 7, 2), 10) == (3, 1)

    try:
        world.run(work)
    finally:
        for thread in threading.enumerate():
            while thread.name == "looks up" and thread.is_alive():
                with contextlib.suppress(OSError):  # it has not opened it, or not any more
                    os.close(os.open(authorities, os.O_WRONLY | os.O_NONBLOCK))
                thread.join(0.01)


def test_the_node_s_mechanism_is_offered_to_nobody_else(world: World) -> None:
    offered = world.bench.node._offered
    assert "BURROWMQ-NODE" not in (*offered.plain.mechanisms, *offered.secure.mechanisms)


@pytest.mark.parametrize("mechanism", ["plain", "amqplain"])
def test_a_plus_of_a_name_or_a_password_is_one(world: World, mechanism: str) -> None:
    auth = world.bench.node.auth
    auth.set_password("a+b", "c+d e\u00e9")
    auth.set_permission("/", "a+b", EVERYTHING)

    async def work() -> None:
        uri = f"amqp://a+b:c%2Bd%20e%C3%A9@127.0.0.1:{world.bench.port}/%2F"
        link = await world.on_channel(f"{uri}?auth_mechanism={mechanism}")
        assert [each.user.name for each in world.bench.node.sessions] == ["a+b"]
        link.abort()

    world.run(work)


def test_a_link_of_the_node_s_own_may_do_everything_and_a_user_s_what_he_may(world: World) -> None:
    async def work() -> None:
        node = world.bench.node
        link = await world.on_channel("amqp://")
        assert [each.user.name for each in node.sessions] == ["none"]
        node.auth.put_user("alice", "secret", ())
        other = world.open("amqp://alice@/%2F")
        with pytest.raises(connect.CannotConnect, match="refused for user 'alice'"):
            await other
        link.abort()

    world.run(work)


def test_what_nobody_reads_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "UNREAD_MAX", 1000)

    async def work() -> None:
        link = await world.on_channel("amqp://")
        link.pause_reading()
        for _ in range(200):
            link.connection.publish(1, join_address(b"", b"gone"), [MESSAGE], mandatory=True)
        link.flush()
        await world.owner.until(lambda: bool(world.owner.reasons))

    world.run(work)
    assert "not read" in world.owner.reasons[0]
