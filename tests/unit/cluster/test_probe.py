"""Each server is asked by itself, and what is wrong with one is said in words."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

import pytest
import uvloop

from burrowmq.cluster import probe
from burrowmq.cluster.link import Server
from burrowmq.cluster.probe import sight
from tests.support.nats_peer import listening
from tests.support.ports import free_port


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
            found = await sight([at(peer.port) for peer in (first, second, third)])
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
            found = await sight([at(peer.port) for peer in (old, bare)])
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
            found = await sight(places)
        assert [each.where for each in found] == places
        assert all(each.greeting is None for each in found)
        assert found[0].reason == "no answer for 0 s"
        assert found[1].reason == "what answers there is no nats-server"
        assert found[2].reason == "Connection refused"
        assert found[3].reason

    run(scene())
