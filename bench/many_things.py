"""A node with very many of something: `python -m bench.many_things [--number 10000] [--only users,bindings]`.

For each kind (users, settings, virtual hosts, exchanges, bindings, policies, connections, consumers, messages that are
got through HTTP) a node of its own is filled with so many, or a part of it, and asked what tools and operators ask. Prints for each
request the processor time of the node and the longest wait of another client, that asks for a message of an empty queue
again and again, without the time in which it or the node stood in line for a processor (`bench.many_queues`). A wait
above the limit is marked; exit status 1 then. What must happen at one moment (a queue that goes with thousands of
consumers) has no limit: the table says what it costs.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.amqp_line import Line
from bench.many_queues import WAIT_MS, Http, Probe, cpu_ns, fresh_node
from bench.peers import Node

HASH = "8NVWlyDsZ4NSvWmxw0xZ5qvkvE3YXG+hrnhQJVkHpr0jZAbk"
ALL = {"configure": ".*", "write": ".*", "read": ".*"}
QUEUE = {"vhost": "/", "durable": True, "auto_delete": False, "arguments": {}}
PAGE = "page=1&page_size=100"
CONNECTIONS_MAX = 3_000
LARGE_BYTES, LARGE_COUNT = 1_000_000, 60


@dataclass
class Asked:
    """What one request cost, and whom."""

    kind: str
    title: str
    processor_ms: float
    wait_ms: float
    limit_ms: float | None

    @property
    def is_missed(self) -> bool:
        """Whether somebody waited for longer than the limit."""
        return self.limit_ms is not None and self.wait_ms > self.limit_ms

    def line(self) -> str:
        """A line of the table."""
        mark = " **missed**" if self.is_missed else ""
        limit = "" if self.limit_ms is None else f"{self.limit_ms:.0f} ms"
        told = f"{self.processor_ms:,.1f} ms | {self.wait_ms:,.1f} ms{mark}"
        return f"| {self.kind} | {self.title} | {told} | {limit} |"


@dataclass
class Scene:
    """A node, who asks it, and who waits meanwhile."""

    node: Node
    http: Http
    probe: Probe
    kind: str
    asked: list[Asked]
    number: int

    def ask(
        self, path: str, method: str = "GET", body: object = None, *, limit: float | None = WAIT_MS
    ) -> bytes:
        """Make a request, and a line of it."""
        text = None if body is None else json.dumps(body).encode()
        found: list[bytes] = []
        where, _, query = path.partition("?")
        # The name of a connection is that of a port.
        where = "/".join("NAME" if "127.0.0.1" in each else each for each in where.split("/"))
        title = f"{method} `{where}?{query}`" if query else f"{method} `{where}`"
        self.during(title, lambda: found.append(self.http.ask(path, method, text)), limit)
        return found[0]

    def during(self, title: str, act: Callable[[], object], limit: float | None = WAIT_MS) -> None:
        """A line of something else."""
        self.probe.waits_ms()
        before = cpu_ns(self.node.pid)
        act()
        spent = (cpu_ns(self.node.pid) - before) / 1e6
        longest = max(alone for _, alone in self.probe.waits_ms())
        self.asked.append(Asked(self.kind, title, spent, longest, limit))
        print(f"  {self.asked[-1].line()}", file=sys.stderr, flush=True)

    def fill(self, **document: list[dict[str, Any]]) -> None:
        """Import a definitions document."""
        parts = ", ".join(f"{len(rows):,} {name}" for name, rows in document.items())
        text = json.dumps(document).encode()
        self.during(f"import of {parts}", lambda: self.http.ask("/api/definitions", "POST", text))

    def first(self, path: str) -> Any:
        """What a list has first."""
        return json.loads(self.http.plain(path))[0]


def users(scene: Scene) -> None:
    """With permissions, topic permissions and limits."""
    names = [f"u{number}" for number in range(scene.number)]
    limits = {"max-connections": 1000}
    algorithm = "rabbit_password_hashing_sha256"
    user = {"password_hash": HASH, "hashing_algorithm": algorithm, "tags": "", "limits": limits}
    topics = {"vhost": "/", "exchange": "amq.topic", "write": ".*", "read": ".*"}
    scene.fill(
        users=[{"name": name, **user} for name in names],
        permissions=[{"user": name, "vhost": "/", **ALL} for name in names],
        topic_permissions=[{"user": name, **topics} for name in names],
    )
    for path in (
        "/api/users",
        "/api/users/u7",
        "/api/users/without-permissions",
        "/api/permissions",
        "/api/permissions/%2F/u7",
        "/api/topic-permissions",
        "/api/user-limits",
        "/api/user-limits/u7",
        f"/api/burrowmq/pages/users?{PAGE}",
        "/api/definitions",
    ):
        scene.ask(path)
    scene.ask("/api/users/u7", "DELETE")
    scene.ask("/api/users/bulk-delete", "POST", {"users": names[10:]})


def settings(scene: Scene) -> None:
    """Three times the number of global parameters, of operator policies, and of topic permissions of one user."""
    numbers = range(3 * scene.number)
    narrow = {"user": "guest", "vhost": "/", "write": ".*", "read": ".*"}
    policy = {"vhost": "/", "component": "operator_policy"}
    value = {"apply-to": "queues", "definition": {"max-length": 5}, "priority": 1}
    scene.fill(
        global_parameters=[{"name": f"g{at}", "value": {"at": at}} for at in numbers],
        topic_permissions=[{"exchange": f"x{at}", **narrow} for at in numbers],
        parameters=[
            {"name": f"p{at}", **policy, "value": {"pattern": f"^q{at}$", **value}}
            for at in numbers
        ],
    )
    for path in (
        "/api/global-parameters",
        "/api/topic-permissions",
        "/api/parameters",
        "/api/operator-policies",
        "/api/definitions",
        "/api/definitions/%2F",
    ):
        scene.ask(path)


def virtual_hosts(scene: Scene) -> None:
    """A tenth of the number, with a permission each."""
    names = [f"v{number}" for number in range(scene.number // 10)]
    scene.fill(
        vhosts=[{"name": name} for name in names],
        permissions=[{"user": "guest", "vhost": name, **ALL} for name in names],
    )
    for path in (
        "/api/vhosts",
        f"/api/vhosts?{PAGE}",
        f"/api/exchanges?{PAGE}",
        "/api/exchanges",
        f"/api/burrowmq/pages/vhosts?{PAGE}",
        "/api/overview",
        "/api/definitions",
    ):
        scene.ask(path)
    scene.ask("/api/vhosts/v7", "DELETE")


def exchanges(scene: Scene) -> None:
    """And a policy on all of them."""
    properties = {"vhost": "/", "type": "topic", "durable": True, "auto_delete": False}
    scene.fill(
        exchanges=[
            {"name": f"e{at}", **properties, "internal": False, "arguments": {}}
            for at in range(scene.number)
        ]
    )
    for path in ("/api/exchanges", f"/api/exchanges?{PAGE}", "/api/exchanges/%2F/e7"):
        scene.ask(path)
    policy = {"pattern": "^e", "apply-to": "exchanges", "definition": {"alternate-exchange": "a"}}
    scene.ask("/api/policies/%2F/all", "PUT", policy)
    scene.ask("/api/policies/%2F/all", "DELETE")


def policies(scene: Scene) -> None:
    """A policy for each 25 queues."""
    scene.fill(queues=[{"name": f"q{at}", **QUEUE} for at in range(scene.number)])
    scene.fill(
        policies=[
            {
                "vhost": "/",
                "name": f"p{at}",
                "pattern": f"^q{at}",
                "apply-to": "queues",
                "definition": {"max-length": 100 + at},
                "priority": at,
            }
            for at in range(scene.number // 25)
        ]
    )
    for path in (
        "/api/policies",
        f"/api/burrowmq/pages/policies?{PAGE}",
        f"/api/queues?{PAGE}",
        "/api/queues",
    ):
        scene.ask(path)
    strong = {"apply-to": "all", "definition": {"max-length": 5}, "priority": 100_000}
    for name, pattern in (("none", "^zz"), ("some", "^q1"), ("all", ".*")):
        scene.ask(f"/api/policies/%2F/{name}", "PUT", {"pattern": pattern, **strong})
        scene.ask(f"/api/policies/%2F/{name}", "DELETE")


def bindings(scene: Scene) -> None:
    """Four times the number, of one exchange to ten queues."""
    binding = {"source": "amq.topic", "vhost": "/", "destination_type": "queue", "arguments": {}}
    scene.fill(queues=[{"name": f"q{at}", **QUEUE} for at in range(10)])
    scene.fill(
        bindings=[
            {**binding, "destination": f"q{at % 10}", "routing_key": f"k.{at}.*"}
            for at in range(4 * scene.number)
        ]
    )
    for path in (
        "/api/bindings",
        "/api/queues/%2F/q1/bindings",
        "/api/bindings/%2F/e/amq.topic/q/q1",
        "/api/exchanges/%2F/amq.topic/bindings/source",
        "/api/burrowmq/pages/exchange/%2F/amq.topic",
        "/api/definitions",
    ):
        scene.ask(path)
    scene.ask("/api/queues/%2F/q1", "DELETE", limit=None)


def connections(scene: Scene) -> None:
    """A fourth of the number, with a channel each."""
    count = min(CONNECTIONS_MAX, scene.number // 4)
    user = {"password": "other", "tags": ""}
    scene.http.ask("/api/users/other", "PUT", user)
    scene.http.ask("/api/permissions/%2F/other", "PUT", ALL)
    lines = [Line(scene.node.port, "other") for _ in range(count)]
    name = quote(scene.first("/api/connections")["name"], safe="")
    for path in (
        "/api/connections",
        f"/api/connections?{PAGE}",
        f"/api/connections?{PAGE}&sort=recv_oct&sort_reverse=true",
        f"/api/connections/{name}",
        "/api/connections/username/other",
        "/api/connections/username/guest",
        "/api/channels",
        f"/api/channels?{PAGE}",
        f"/api/burrowmq/pages/connections?{PAGE}",
        f"/api/burrowmq/pages/channels?{PAGE}",
        "/api/nodes",
    ):
        scene.ask(path)
    scene.ask("/api/connections/username/other", "DELETE")
    for line in lines:
        line.close()


def consumers(scene: Scene) -> None:
    """Half the number, of one queue on one channel."""
    line = Line(scene.node.port)
    line.declare(["consumed"], durable=True)
    line.consume("consumed", scene.number // 2)
    name = ""
    for row in json.loads(scene.http.plain("/api/channels")):
        if row["consumer_count"]:
            name = quote(row["name"], safe="")
    for path in (
        "/api/queues/%2F/consumed",
        "/api/consumers",
        f"/api/channels/{name}",
        "/api/burrowmq/pages/queue/%2F/consumed",
        f"/api/burrowmq/pages/channel/{name}",
    ):
        scene.ask(path)
    scene.ask("/api/queues/%2F/consumed", "DELETE", limit=None)


def messages(scene: Scene) -> None:
    """Got through HTTP: many, and large ones."""
    line = Line(scene.node.port)
    line.declare(["many", "large"], durable=True)
    line.publish(["many"] * scene.number, b"x" * 100)
    line.publish(["large"] * LARGE_COUNT, b"x" * LARGE_BYTES)
    wanted = {"ackmode": "ack_requeue_true", "encoding": "auto"}
    scene.ask("/api/queues/%2F/many/get", "POST", {"count": scene.number, **wanted}, limit=None)
    large = {"count": LARGE_COUNT, **wanted, "encoding": "base64"}
    scene.ask("/api/queues/%2F/large/get", "POST", large, limit=None)
    scene.ask("/api/queues/%2F/large/get", "POST", {**large, "truncate": 100})
    scene.ask("/api/queues/%2F/many/contents", "DELETE")


KINDS = {
    kind.__name__: kind
    for kind in (
        users,
        settings,
        virtual_hosts,
        exchanges,
        policies,
        bindings,
        connections,
        consumers,
        messages,
    )
}


@contextmanager
def scene_of(scratch: Path, name: str, asked: list[Asked], number: int) -> Iterator[Scene]:
    """A node of its own, and who waits."""
    with fresh_node(scratch, name, "on") as node:
        probe, http = Probe(node), Http(node)
        http.ask("/api/overview")  # what a node loads after its start is loaded now
        yield Scene(node, http, probe, name.replace("_", " "), asked, number)
        probe.end()


def print_table(kind: str, title: str, asked: list[Asked]) -> None:
    """What all cost, as a table of Markdown."""
    print(f"| {kind} | {title} | processor | longest wait | limit |\n|---|---|---:|---:|---:|")
    print("\n".join(each.line() for each in asked))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.many_things", description=__doc__)
    parser.add_argument("--number", type=int, default=10_000)
    parser.add_argument("--only", default=",".join(KINDS), help="which kinds, with commas")
    options = parser.parse_args()
    wanted = options.only.split(",")
    if unknown := [name for name in wanted if name not in KINDS]:
        parser.error(f"no kind is called {', '.join(unknown)}; there are {', '.join(KINDS)}")
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asked: list[Asked] = []
    scratch = Path(tempfile.mkdtemp(prefix="many-things-"))
    try:
        for name in wanted:
            print(f"{name}: {(KINDS[name].__doc__ or '').strip()}", file=sys.stderr)
            with scene_of(scratch, name, asked, options.number) as scene:
                KINDS[name](scene)
    finally:
        shutil.rmtree(scratch)
        print_table("many", "asked", asked)
    return int(any(each.is_missed for each in asked))


if __name__ == "__main__":
    sys.exit(main())
