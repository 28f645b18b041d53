"""RabbitMQ's own shovel with BurrowMQ at its ends, and ours with RabbitMQ at its: each ack mode, both ways."""

from __future__ import annotations

from typing import Any

import pytest

from tests.differential.broker import Broker, Place
from tests.differential.peer import wait_for

pytestmark = [pytest.mark.differential, pytest.mark.needs_server, pytest.mark.long]

MODES = ("on-confirm", "on-publish", "no-ack")
COUNT = 50


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("way", ["push", "pull"])
@pytest.mark.parametrize("mover", ["RabbitMQ", "BurrowMQ"])
def test_a_shovel_of_one_serves_the_other(
    places: tuple[Place, Place], mover: str, way: str, mode: str
) -> None:
    own, other = places if mover == "RabbitMQ" else places[::-1]
    name = f"peers-{mover}-{way}-{mode}"
    broker, far = Broker(own, name), Broker(other, name)
    source, destination = (broker, far) if way == "push" else (far, broker)
    away = f"amqp://guest:guest@127.0.0.1:{other.amqp_port}/%2F"
    ends = {"src-uri": "amqp://", "dest-uri": away}
    if way == "pull":
        ends = {"src-uri": away, "dest-uri": "amqp://"}
    value: dict[str, Any] = {**ends, "src-queue": name, "dest-queue": f"{name}-to"}
    try:
        peer = source.peer()
        peer.queue(name, durable=True)
        arrivals = destination.peer()
        arrivals.queue(f"{name}-to", durable=True)
        peer.fill(name, *(str(each).encode() for each in range(COUNT)), headers={"h": 1})
        more = {"ack-mode": mode, "dest-add-forward-headers": True}
        path = f"parameters/shovel/%2F/{name}"
        assert broker.http("PUT", path, {"value": {**value, **more}})[0] == 201
        wait_for(lambda: arrivals.ready(f"{name}-to"), lambda ready: ready == COUNT, 60.0)
        got = [arrivals.get(f"{name}-to") for _ in range(COUNT)]
        assert [each["body"] for each in got] == [str(each).encode() for each in range(COUNT)]
        entry = got[0]["properties"]["headers"]["x-shovelled"][0]
        assert (entry["src-queue"], entry["shovel-name"]) == (f"S:{name}", f"S:{name}")
        assert peer.ready(name) == 0
        assert broker.http("DELETE", path)[0] == 204
    finally:
        broker.finish()
        far.finish()
