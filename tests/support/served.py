"""A management server over a fake node in a thread, and burrowctl in this process.

For tests that want the real thing between them: sockets, HTTP, JSON. `serving` gives a `Served`; `ctl` runs one
command against its control socket and returns what it printed.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import http.client
import io
import json
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from burrowmq.cli.__main__ import main
from burrowmq.management import doors, server
from tests.support.fake_node import FakeEndpoint, FakeNode, FakeResources

START_TIMEOUT_S = 20.0


class Answer(NamedTuple):
    """An HTTP reply."""

    status: int
    headers: dict[str, str]
    body: Any


class Output(NamedTuple):
    """What a command printed and its exit status."""

    code: int
    out: str
    err: str


@dataclass
class Served:
    """A running server."""

    node: FakeNode
    data_dir: Path
    port: int
    metrics_port: int

    def api(
        self,
        method: str,
        path: str,
        body: Any = None,
        login: str | None = "guest:guest",
        **headers: str,
    ) -> Answer:
        """One request to the HTTP API."""
        sent = dict(headers)
        if login is not None:
            sent["Authorization"] = "Basic " + base64.b64encode(login.encode()).decode()
        return request(self.port, method, path, body, sent)

    def get(self, path: str) -> Any:
        """The JSON of a GET that must succeed."""
        answer = self.api("GET", path)
        assert answer.status == 200, answer
        return answer.body

    def ctl(self, *argv: str, stdin: str = "") -> Output:
        """Run one command over the control socket."""
        return ctl("--data-dir", str(self.data_dir), *argv, stdin=stdin)


def request(
    port: int, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> Answer:
    """One HTTP request to this machine."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        data = body if isinstance(body, str | bytes) or body is None else json.dumps(body)
        connection.request(method, path, body=data, headers=headers or {})
        response = connection.getresponse()
        raw = response.read()
    finally:
        connection.close()
    found = {name.lower(): value for name, value in response.getheaders()}
    if raw and found.get("content-type", "").startswith("application/json"):
        return Answer(response.status, found, json.loads(raw))
    return Answer(response.status, found, raw.decode("utf-8", "replace"))


def ctl(*argv: str, stdin: str = "") -> Output:
    """Run one command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch("sys.stdin", io.StringIO(stdin)),
        mock.patch("sys.argv", ["burrowctl"]),
    ):
        code = main(list(argv))
    return Output(code, out.getvalue(), err.getvalue())


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@contextlib.contextmanager
def serving(node: FakeNode, data_dir: Path) -> Iterator[Served]:
    """Run the management server of `node` in a thread of its own."""
    port, metrics_port = free_ports(2)
    node.config.data_dir = str(data_dir)
    node.config.management.listeners = (FakeEndpoint("127.0.0.1", port),)
    node.config.prometheus.listeners = (FakeEndpoint("127.0.0.1", metrics_port),)
    node.config.resources = FakeResources()
    loop, is_up = asyncio.new_event_loop(), threading.Event()
    stop = asyncio.Event()

    async def serve() -> None:
        management = await server.start(node, doors.bind(node))
        is_up.set()
        await stop.wait()
        await management.stop()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(serve())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert is_up.wait(START_TIMEOUT_S), "the server did not start"
        yield Served(node, data_dir, port, metrics_port)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
