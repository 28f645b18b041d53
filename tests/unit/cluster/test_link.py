"""A link stays connected: to whichever server answers, with its subscriptions; what it does not trust it leaves."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Coroutine
from pathlib import Path

import pytest
import uvloop

from burrowmq.cluster import link as link_module
from burrowmq.cluster.link import Link, Server, server
from burrowmq.cluster.wire import Delivered, Greeting
from tests.support.certificates import Authority
from tests.support.nats_peer import NatsPeer, listening


class Owner:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: asyncio.Queue[str] = asyncio.Queue()
        self.deliveries: list[Delivered] = []

    def opened(self, info: Greeting) -> None:
        self.told.put_nowait(f"opened {info.server_name}")

    def received(self, deliveries: list[Delivered]) -> None:
        self.deliveries += deliveries
        self.told.put_nowait("received")

    def drained(self) -> None:
        self.told.put_nowait("drained")

    def refused(self, text: str) -> None:
        self.told.put_nowait(f"refused {text}")

    def lost(self, reason: str) -> None:
        self.told.put_nowait(f"lost {reason}")

    def failed(self, error: Exception) -> None:
        self.told.put_nowait(f"failed {error}")


class Buggy(Owner):
    """Is told, and stumbles over it."""

    def opened(self, info: Greeting) -> None:
        raise LookupError("opened")

    def received(self, deliveries: list[Delivered]) -> None:
        raise LookupError("received")

    def lost(self, reason: str) -> None:
        raise LookupError("lost")


def run(coroutine: Coroutine[None, None, None]) -> None:
    async def in_time() -> None:
        async with asyncio.timeout(20):
            await coroutine

    uvloop.run(in_time())


def linked(owner: Owner, *peers: NatsPeer, user: str | None = None) -> Link:
    servers = [Server(host="127.0.0.1", port=peer.port, user=user, password=user) for peer in peers]
    return Link(servers, owner, name="node", version="1")


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "PAUSES_S", (0.01,))


def test_a_link_logs_in_and_hears() -> None:
    async def scene() -> None:
        async with listening() as peer:
            owner = Owner()
            link = linked(owner, peer, user="u")
            link.subscribe(b"a.>", 1)
            link.start()
            assert await owner.told.get() == "opened peer"
            assert link.is_open
            assert link.server_label == f"127.0.0.1:{peer.port}"
            hello = json.loads((await peer.heard("CONNECT")).partition(b" ")[2])
            assert (hello["user"], hello["pass"], hello["name"]) == ("u", "u", "node")
            assert await peer.heard("SUB") == b"SUB a.>  1"
            link.write(b"PUB a.b 2\r\nhi\r\n")
            assert await peer.heard("PUB") == b"PUB a.b 2"
            peer.say(b"MSG a.b 1 2\r\nhi\r\nPING\r\nMSG a.c 1 0\r\n\r\n")
            assert await owner.told.get() == "received"  # once, with all of the read
            assert [each.subject for each in owner.deliveries] == [b"a.b", b"a.c"]
            await peer.heard("PONG")
            link.unsubscribe(1)
            link.unsubscribe(1)
            assert await peer.heard("UNSUB") == b"UNSUB 1"
            await link.close()
            assert not link.is_open
            assert link.server_label == ""
            link.write(b"PUB nobody 0\r\n\r\n")  # is lost, as the owner knows

    run(scene())


def test_a_link_that_breaks_goes_to_the_next_server_with_its_subscriptions() -> None:
    async def scene() -> None:
        async with listening("first") as first, listening("second") as second:
            owner = Owner()
            link = linked(owner, first, second)
            link.start()
            assert await owner.told.get() == "opened first"
            link.subscribe(b"a", 7)
            assert await first.heard("SUB") == b"SUB a  7"
            first.hang_up()
            assert "the server closed it" in await owner.told.get()
            assert await owner.told.get() == "opened second"
            assert await second.heard("SUB") == b"SUB a  7"
            await link.close()

    run(scene())


def test_an_error_of_the_owner_does_not_end_the_link() -> None:
    async def scene() -> None:
        async with listening() as peer:
            owner = Buggy()
            link = linked(owner, peer)
            link.subscribe(b"a", 1)
            link.start()
            for _ in range(2):
                assert await owner.told.get() == "failed opened"
                await peer.heard("SUB")
                assert link.is_open
                peer.say(b"MSG a 1 0\r\n\r\n")
                assert await owner.told.get() == "failed received"
                peer.hang_up()
                assert await owner.told.get() == "failed lost"
            await link.close()

    run(scene())


def test_where_nobody_listens_is_tried_again() -> None:
    async def scene() -> None:
        async with listening() as gone:
            port = gone.port
        owner = Owner()
        link = linked(owner, gone)
        link.start()
        for _ in range(2):
            told = await owner.told.get()
            assert told.startswith(f"lost 127.0.0.1:{port}: ")
            assert "refused" in told.lower()
        await link.close()

    run(scene())


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"-ERR 'Authorization Violation'\r\n", "Authorization Violation"),
        (b"HTTP/1.1 400\r\n", "an unknown operation: 'HTTP/1.1 400'"),
    ],
)
def test_a_login_that_is_refused_is_told(answer: bytes, reason: str) -> None:
    async def scene() -> None:
        async with listening() as peer:
            peer.answer = answer
            owner = Owner()
            link = linked(owner, peer)
            link.start()
            await peer.heard("CONNECT")
            if answer.startswith(b"-ERR"):
                peer.hang_up()
            assert await owner.told.get() == f"lost 127.0.0.1:{peer.port}: {reason}"
            assert not link.is_open
            await link.close()

    run(scene())


def test_a_refusal_that_did_not_end_the_connection_is_no_reason_for_its_end() -> None:
    async def scene() -> None:
        async with listening() as peer:
            owner = Owner()
            link = linked(owner, peer)
            link.subscribe(b"a", 1)
            link.start()
            assert await owner.told.get() == "opened peer"
            peer.say(b"-ERR 'Permissions Violation for Publish to \"b\"'\r\n")
            link.write(b"PING\r\n")
            await peer.heard("SUB")
            peer.say(b"MSG a 1 0\r\n\r\n")
            refused = 'refused Permissions Violation for Publish to "b"'
            assert await owner.told.get() == refused
            assert await owner.told.get() == "received"
            # What came in one read with the refusal does not tell which was the last; the next one does.
            peer.say(b"MSG a 1 0\r\n\r\n")
            assert await owner.told.get() == "received"
            peer.hang_up()
            reason = "the server closed it"
            assert await owner.told.get() == f"lost 127.0.0.1:{peer.port}: {reason}"
            await link.close()

    run(scene())


def test_servers_that_end_each_connection_at_once_are_not_stormed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def paused(delay_s: float) -> None:
        pauses.append(delay_s)
        await sleep(0)

    monkeypatch.setattr(link_module, "PAUSES_S", (0.05, 0.1))
    monkeypatch.setattr("burrowmq.cluster.link.asyncio.sleep", paused)

    async def scene() -> None:
        async with listening("first") as first, listening("second") as second:
            owner = Owner()
            link = linked(owner, first, second)
            link.start()
            for _ in range(3):
                for peer in (first, second):
                    assert await owner.told.get() == f"opened {peer.info['server_name']}"
                    peer.hang_up()
                    assert (await owner.told.get()).startswith("lost")
            assert await owner.told.get() == "opened first"
            assert pauses == [0.05, 0.1, 0.1]
            await link.close()

    run(scene())


def test_a_connection_that_lasted_is_made_anew_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "LASTING_S", 0.0)
    monkeypatch.setattr(link_module, "PAUSES_S", (60.0,))

    async def scene() -> None:
        async with listening() as peer:
            owner = Owner()
            link = linked(owner, peer)
            link.start()
            for _ in range(3):
                assert await owner.told.get() == "opened peer"
                peer.hang_up()
                assert (await owner.told.get()).startswith("lost")
            await link.close()

    run(scene())


def test_a_server_without_jetstream_is_of_no_use() -> None:
    async def scene() -> None:
        async with listening() as peer:
            peer.info["jetstream"] = False
            owner = Owner()
            link = linked(owner, peer)
            link.start()
            assert (await owner.told.get()).endswith("the server has no JetStream")
            await link.close()

    run(scene())


def test_a_name_that_no_machine_can_have_is_one_server_that_does_not_answer() -> None:
    async def scene() -> None:
        async with listening() as peer:
            odd = Server(host="a" * 64 + ".example", port=4222)
            owner = Owner()
            link = Link(
                [odd, Server(host="127.0.0.1", port=peer.port)], owner, name="n", version="1"
            )
            link.start()
            told = await asyncio.wait_for(owner.told.get(), 5)
            assert told.startswith(f"lost {odd.label}: ")
            assert (await asyncio.wait_for(owner.told.get(), 5)).startswith("opened")
            await link.close()

    run(scene())


@pytest.mark.parametrize("version", ["2.9.10", "2.14.9", "", "newest"])
def test_an_old_server_is_not_used(version: str) -> None:
    async def scene() -> None:
        async with listening() as peer:
            peer.info["version"] = version
            owner = Owner()
            link = linked(owner, peer)
            link.start()
            expected = f"the server is nats-server {version}, which is older than 2.15"
            assert (await owner.told.get()).endswith(expected)
            await link.close()

    run(scene())


@pytest.mark.parametrize("version", ["2.15.0-RC.1", "v2.100.1", "3.0.0"])
def test_a_newer_one_is(version: str) -> None:
    async def scene() -> None:
        async with listening() as peer:
            peer.info["version"] = version
            owner = Owner()
            link = linked(owner, peer)
            link.start()
            assert (await owner.told.get()).startswith("opened")
            await link.close()

    run(scene())


def test_a_server_that_does_not_log_in_has_two_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "CONNECT_S", 0.05)

    async def scene() -> None:
        async with listening() as peer:
            peer.answer = b""
            owner = Owner()
            link = linked(owner, peer)
            link.start()
            assert (await owner.told.get()).endswith("no answer")
            await link.close()

    run(scene())


def test_a_server_that_is_silent_counts_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "PING_S", 0.02)
    monkeypatch.setattr(link_module, "SILENT_S", 0.1)

    async def scene() -> None:
        async with listening() as peer:
            owner = Owner()
            link = linked(owner, peer)
            link.start()
            assert await owner.told.get() == "opened peer"
            peer.answer = b""
            assert "silent for" in await owner.told.get()
            await link.close()

    run(scene())


def test_a_server_that_is_of_no_use_is_left_for_the_next() -> None:
    async def scene() -> None:
        async with listening() as peer:
            owner = Owner()
            link = linked(owner, peer)
            link.leave("before there is any")
            link.start()
            assert await owner.told.get() == "opened peer"
            link.leave("of no use")
            assert "of no use" in await owner.told.get()
            assert await owner.told.get() == "opened peer"
            await link.close()

    run(scene())


@pytest.mark.slow
def test_a_server_that_answers_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "PING_S", 0.01)
    monkeypatch.setattr(link_module, "SILENT_S", 0.5)

    async def scene() -> None:
        async with listening() as peer:
            owner = Owner()
            link = linked(owner, peer)
            link.start()
            assert await owner.told.get() == "opened peer"
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.7):
                    await owner.told.get()
            assert peer.connection_count == 1
            await link.close()

    run(scene())


def test_a_server_that_is_about_to_stop_is_left() -> None:
    async def scene() -> None:
        async with listening("first") as first, listening("second") as second:
            owner = Owner()
            link = linked(owner, first, second)
            link.start()
            assert await owner.told.get() == "opened first"
            first.info["ldm"] = True
            first.tell()
            assert (await owner.told.get()).endswith("the server is about to stop")
            assert await owner.told.get() == "opened second"
            await link.close()

    run(scene())


def test_a_server_that_does_not_read_is_felt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "HIGH_WATER", 1000)

    async def scene() -> None:
        async with listening() as peer:
            owner = Owner()
            link = linked(owner, peer)
            link.start()
            assert await owner.told.get() == "opened peer"
            assert not link.is_congested
            link.write((b"x" * 30_000 + b"\r\n") * 300)  # more than a socket takes, in few lines
            assert link.is_congested
            assert await owner.told.get() == "drained"
            assert not link.is_congested
            await link.close()

    run(scene())


def test_what_was_written_is_taken_before_the_close() -> None:
    async def scene() -> None:
        async with listening() as peer:
            owner = Owner()
            link = linked(owner, peer)
            link.start()
            assert await owner.told.get() == "opened peer"
            link.write(b"PUB last 0\r\n\r\n" * 1000)
            await link.close()
            for _ in range(1000):
                assert await peer.heard("PUB") == b"PUB last 0"

    run(scene())


def test_a_server_that_does_not_answer_holds_up_no_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "FLUSH_S", 0.05)

    async def scene() -> None:
        async with listening() as peer:
            owner = Owner()
            link = linked(owner, peer)
            link.start()
            assert await owner.told.get() == "opened peer"
            peer.answer = b""
            await asyncio.wait_for(link.close(), 5)

    run(scene())


@pytest.mark.parametrize("is_trusted", [True, False])
def test_tls_begins_behind_the_servers_first_word(tmp_path: Path, is_trusted: bool) -> None:
    authority = Authority(tmp_path)
    leaf = authority.issue_server()
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(leaf.certificate, leaf.key)
    trusting = ssl.create_default_context()
    if is_trusted:
        trusting.load_verify_locations(authority.file)

    async def scene() -> None:
        async with listening() as peer:
            peer.tls = serving
            peer.info["tls_required"] = True
            owner = Owner()
            link = Link(
                [Server(host="127.0.0.1", port=peer.port)],
                owner,
                name="node",
                version="1",
                tls=trusting,
            )
            link.start()
            if is_trusted:
                assert await owner.told.get() == "opened peer"
                await peer.heard("CONNECT")
            else:
                assert "CERTIFICATE_VERIFY_FAILED" in await owner.told.get()
            await link.close()

    run(scene())


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("nats://h", Server(host="h", port=4222)),
        ("nats://h:1/", Server(host="h", port=1)),
        ("tls://u%40x:p%2F@[::1]:4222", Server(host="::1", port=4222, user="u@x", password="p/", is_tls=True)),
    ],
)  # fmt: skip
def test_a_url_names_a_server(url: str, expected: Server) -> None:
    assert server(url) == expected


@pytest.mark.parametrize(
    "url", ["", "h:4222", "http://h", "nats://", "nats://h:x", "nats://h/path", "nats://h?a=secret", "nats://[::1"]
)  # fmt: skip
def test_what_names_no_server_is_refused_without_its_secrets(url: str) -> None:
    with pytest.raises(ValueError, match=r"URL") as caught:
        server(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "label"),
    [
        ("nats://n1.example", "n1.example:4222"),
        ("nats://10.0.0.1:4223", "10.0.0.1:4223"),
        ("nats://[fe80::1]:4222", "[fe80::1]:4222"),
    ],
)
def test_operators_are_shown_a_server_as_its_url_has_it(url: str, label: str) -> None:
    assert server(url).label == label
