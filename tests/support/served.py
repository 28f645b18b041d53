"""A node and its management server in a thread, and burrowctl in this process.

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
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from burrowmq.broker.node.running import RunningNode
from burrowmq.cli.__main__ import main
from burrowmq.config.schema import ManagementConfig, PrometheusConfig
from burrowmq.config.units import Endpoint
from burrowmq.management import bound_sockets, server
from tests.support.bench.node import NodeBench
from tests.support.ports import free_ports

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

    bench: NodeBench
    data_dir: Path
    port: int
    metrics_port: int

    @property
    def node(self) -> RunningNode:
        """The node that is served; it runs in another thread: what changes it is a step of the bench."""
        return self.bench.node

    def stop_application(self) -> None:
        """Stop what is served, and keep the server; clients of the bench are waited for, as any that do not close."""
        stopping = self.bench.host.stop_application()
        asyncio.run_coroutine_threadsafe(stopping, self.bench.loop).result(START_TIMEOUT_S)

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


@contextlib.contextmanager
def serving(
    data_dir: Path,
    fill: Callable[[NodeBench], object] | None = None,
    management: ManagementConfig = ManagementConfig(),
    prometheus: PrometheusConfig = PrometheusConfig(),
    **options: Any,
) -> Iterator[Served]:
    """Run a node and its management server in a thread of their own; `options` are of the node's configuration."""
    amqp_port, port, metrics_port = free_ports(3)
    bench = NodeBench(
        data_dir,
        amqp_port,
        management=replace(management, listeners=(Endpoint("127.0.0.1", port),)),
        prometheus=replace(prometheus, listeners=(Endpoint("127.0.0.1", metrics_port),)),
        **options,
    )
    with bench:
        if fill is not None:
            fill(bench)
        with _in_thread(bench):
            yield Served(bench, data_dir, port, metrics_port)


@contextlib.contextmanager
def _in_thread(bench: NodeBench) -> Iterator[None]:
    is_up, stop = threading.Event(), asyncio.Event()

    async def serve() -> None:
        management = await server.start(bench.host, bound_sockets.bind(bench.host.process))
        is_up.set()
        await stop.wait()
        await management.stop()

    thread = threading.Thread(target=bench.loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        assert is_up.wait(START_TIMEOUT_S), "the server did not start"
        yield
    finally:
        bench.loop.call_soon_threadsafe(stop.set)
        thread.join()
