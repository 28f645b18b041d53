"""A node with 1,000 queues and a story: deep ones, one that drops, one whose messages are held, a client that floods.

`World` owns its connections and the thread that publishes; `close` ends them. The same world is made on BurrowMQ and on
RabbitMQ, by the HTTP API and AMQP alone. Called by `bench.ui.figures` and `bench.ui.pictures`.
"""

from __future__ import annotations

import base64
import json
import threading
import time
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote

import pika
from pika.adapters.blocking_connection import BlockingChannel

QUEUES = 1_000
TEAMS = ("billing", "catalog", "fraud", "mail", "orders", "returns", "search", "shipping")
DEEPEST, UNCONSUMED, DROPPING, HELD = "audit.trail", "invoices.failed", "clicks.raw", "parcels.eu"
FLOODED, EXCHANGE, ALTERNATE = "import.rows", "shop.events", "shop.lost"
FLOODER, HOLDER = "importer", "warehouse"
FLOOD_PER_S = 200
AUTHORIZATION = "Basic " + base64.b64encode(b"guest:guest").decode()


class World:
    """One node's clients; see the module."""

    def __init__(self, amqp_port: int, api_port: int) -> None:
        self._port = amqp_port
        self.api = f"http://127.0.0.1:{api_port}/"
        self._opened: list[pika.BlockingConnection] = []
        self._ends = threading.Event()
        self._flood: threading.Thread | None = None

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """One request to the HTTP API as guest."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": AUTHORIZATION, "Content-Type": "application/json"}
        asked = urllib.request.Request(self.api + "api/" + path, data, headers, method=method)
        with urllib.request.urlopen(asked, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def channel(self, name: str) -> BlockingChannel:
        """A channel of a connection with a name of its own."""
        parameters = pika.ConnectionParameters(
            "127.0.0.1",
            self._port,
            heartbeat=0,
            client_properties={"connection_name": name},
        )
        self._opened.append(pika.BlockingConnection(parameters))
        return self._opened[-1].channel()

    def fill(self) -> None:
        """Queues, policies, messages, and clients that hold some."""
        self.request("POST", "definitions", _definitions())
        channel = self.channel("seeder")
        persistent = pika.BasicProperties(delivery_mode=2, content_type="application/json")
        depths = {DEEPEST: 4_000, UNCONSUMED: 3_500, DROPPING: 3_000, HELD: 300}
        depths |= {f"{team}.{at:03}": 10 + at for at, team in enumerate(TEAMS)}
        for queue, depth in depths.items():
            for at in range(depth):
                channel.basic_publish("", queue, b'{"order": %d}' % at, persistent)
            channel.queue_declare(queue, passive=True)  # answered behind them all
        self._consume("auditor", DEEPEST, 50)
        self._consume(HOLDER, HELD, 250)
        for at, team in enumerate(TEAMS):
            self._consume(f"{team}-worker-{at}", f"{team}.{at:03}", 5)

    def _consume(self, name: str, queue: str, prefetch: int) -> None:
        channel = self.channel(name)
        channel.basic_qos(prefetch_count=prefetch)
        channel.basic_consume(queue, lambda *_: None, consumer_tag=f"{name}-1")
        channel.connection.process_data_events(0.1)

    def flood(self) -> None:
        """Publish steadily until `close`, and get what is published by another client."""
        publisher, taker = self.channel(FLOODER), self.channel("loader")
        taker.basic_consume(FLOODED, lambda *_: None, auto_ack=True)

        def run() -> None:
            body = b"x" * 2_000
            while not self._ends.is_set():
                try:
                    for _ in range(FLOOD_PER_S // 10):
                        publisher.basic_publish("", FLOODED, body)
                    publisher.connection.process_data_events(0)
                    taker.connection.process_data_events(0)
                except pika.exceptions.AMQPError:
                    return  # somebody has closed it: that is one of the tasks
                self._ends.wait(0.1)

        self._flood = threading.Thread(target=run)
        self._flood.start()

    def await_figures(self, limit_s: float = 60.0) -> None:
        """Wait until the node's statistics know of the flood: they are some seconds late, RabbitMQ's and ours."""
        deadline = time.monotonic() + limit_s
        while not self._is_flood_known():
            if time.monotonic() > deadline:
                raise RuntimeError(f"nothing is said of the flood after {limit_s:.0f} s")
            time.sleep(0.5)

    def _is_flood_known(self) -> bool:
        rows = self.request("GET", "connections")
        mine = (row for row in rows if row.get("user_provided_name") == FLOODER)
        return any(row.get("recv_oct_details", {}).get("rate", 0) > 0 for row in mine)

    def close(self) -> None:
        """End the clients."""
        self._ends.set()
        if self._flood is not None:
            self._flood.join()
        for connection in self._opened:
            if connection.is_open:
                connection.close()


def queue_path(name: str) -> str:
    """A queue's path below /api."""
    return f"queues/%2F/{quote(name, safe='')}"


def _definitions() -> dict[str, Any]:
    names = [f"{TEAMS[at % len(TEAMS)]}.{at:03}" for at in range(QUEUES - 5)]
    arguments: dict[str, dict[str, Any]] = {
        DROPPING: {"x-max-length": 9_000, "x-dead-letter-exchange": ALTERNATE},
        FLOODED: {"x-message-ttl": 60_000},
    }
    queues = [
        {"name": name, "vhost": "/", "durable": True, "auto_delete": False, "arguments": arguments.get(name, {})}
        for name in (DEEPEST, UNCONSUMED, DROPPING, HELD, FLOODED, *names)
    ]  # fmt: skip
    exchanges = [
        {"name": name, "vhost": "/", "type": kind, "durable": True, "auto_delete": False, "internal": False,
         "arguments": {"alternate-exchange": ALTERNATE} if name == EXCHANGE else {}}
        for name, kind in ((EXCHANGE, "topic"), (ALTERNATE, "fanout"))
    ]  # fmt: skip
    bound = [(EXCHANGE, name, f"{name.partition('.')[0]}.*.created") for name in names[:24]]
    bound += [(EXCHANGE, DROPPING, "click.#"), (ALTERNATE, UNCONSUMED, "")]
    bindings = [
        {"source": source, "vhost": "/", "destination": name, "destination_type": "queue", "routing_key": key,
         "arguments": {}}
        for source, name, key in bound
    ]  # fmt: skip
    policies = [
        {"vhost": "/", "name": name, "pattern": pattern, "apply-to": "queues", "priority": priority,
         "definition": definition}
        for name, pattern, priority, definition in (
            ("limits", "^clicks", 5, {"max-length": 5_000}),
            ("dead-letters", "^(orders|returns)", 3, {"dead-letter-exchange": ALTERNATE}),
            ("expiry", "^search", 1, {"message-ttl": 86_400_000, "max-length": 20_000}),
        )
    ]  # fmt: skip
    return {"queues": queues, "exchanges": exchanges, "bindings": bindings, "policies": policies}
