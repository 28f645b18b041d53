"""Each server is asked by itself, and what is wrong with one is said in words."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Coroutine
from pathlib import Path

import pytest
import uvloop

from burrowmq.cluster import probe
from burrowmq.cluster.link import Server
from burrowmq.cluster.probe import Caller, sight
from tests.support.certificates import Authority
from tests.support.nats_peer import listening
from tests.support.ports import free_port

NODE = Caller("node", "1", ssl.create_default_context)


def run(coroutine: Coroutine[None, None, None]) -> None:
    async def in_time() -> None:
        async with asyncio.timeout(20):
            await coroutine

    uvloop.run(in_time())


def at(port: int) -> Server:
    return Server(host="127.0.0.1", port=port)


def test_servers_say_who_they_are_and_are_left_at_once() -> None:
    async def scene() -> None:
        async with listening("a") as first, listening("b") as second, listening("c") as third:
            second.info["jetstream"] = False
            third.info["ldm"] = True
            found = await sight([at(peer.port) for peer in (first, second, third)], NODE)
            names = [each.greeting.server_name for each in found if each.greeting is not None]
            assert names == ["a", "b", "c"]
            reasons = [each.reason for each in found]
            assert reasons == ["", "it has no JetStream", "it is about to stop"]

    run(scene())


def test_a_server_at_which_no_link_logs_in_is_of_no_use() -> None:
    async def scene() -> None:
        async with listening("a") as old, listening("b") as bare:
            old.info["version"] = "2.9.10"
            bare.info["headers"] = False
            found = await sight([at(peer.port) for peer in (old, bare)], NODE)
            assert [each.greeting is not None for each in found] == [True, True]
            assert [each.reason for each in found] == [
                "it is nats-server 2.9.10, which is older than 2.15",
                "it has no JetStream",
            ]

    run(scene())


def test_what_does_not_answer_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "PATIENCE_S", 0.2)

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def another(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"PONG\r\n")
        writer.close()

    async def scene() -> None:
        async with (
            await asyncio.start_server(silent, "127.0.0.1", 0) as quiet,
            await asyncio.start_server(another, "127.0.0.1", 0) as other,
        ):
            ports = [each.sockets[0].getsockname()[1] for each in (quiet, other)]
            places = [*map(at, ports), at(free_port()), Server(host="x" * 70, port=1)]
            found = await sight(places, NODE)
        assert [each.where for each in found] == places
        assert all(each.greeting is None for each in found)
        assert found[0].reason == "no answer for 0 s"
        assert found[1].reason == "what answers there is no nats-server"
        assert found[2].reason == "Connection refused"
        assert found[3].reason

    run(scene())


@pytest.mark.parametrize("is_trusted", [True, False])
def test_a_certificate_that_is_not_trusted_is_told(tmp_path: Path, is_trusted: bool) -> None:
    authority = Authority(tmp_path)
    leaf = authority.issue_server()
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(leaf.certificate, leaf.key)
    trusting = ssl.create_default_context()
    if is_trusted:
        trusting.load_verify_locations(authority.file)

    async def scene() -> None:
        async with listening("a") as peer:
            peer.tls = serving
            peer.info["tls_required"] = True
            (found,) = await sight([at(peer.port)], Caller("node", "1", lambda: trusting))
            assert found.greeting is not None
            if is_trusted:
                assert found.reason == ""
            else:
                assert "CERTIFICATE_VERIFY_FAILED" in found.reason

    run(scene())


def test_a_server_that_does_not_know_the_account_is_of_no_use() -> None:
    async def scene() -> None:
        async with listening("a") as strict, listening("b") as mute:
            strict.answer = b"-ERR 'Authorization Violation'\r\n"
            where = Server(host="127.0.0.1", port=strict.port, user="u", password="p")
            (found,) = await sight([where], NODE)
            assert (found.greeting is not None, found.reason) == (True, "Authorization Violation")
            hello = json.loads((await strict.heard("CONNECT")).partition(b" ")[2])
            assert (hello["user"], hello["pass"], hello["name"]) == ("u", "p", "node")
            mute.answer = b""
            task = asyncio.ensure_future(sight([at(mute.port)], NODE))
            await mute.heard("CONNECT")
            mute.hang_up()
            (found,) = await task
            assert found.reason == "the server closed it"

    run(scene())
