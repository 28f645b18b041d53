"""A node with very many queues: `python -m bench.many_queues [--queues 100000] [--small 10000] [--commit-log off]`.

Two nodes, one after the other. The first has `--queues` empty durable queues, a tenth of them bound to an exchange: what each page of the
HTTP API and the metrics cost, how long other clients wait meanwhile, memory, stop and start. The second has `--small`
durable queues with a persistent message each: start after kill -9, memory, disk, and what a policy on all, an import, a
list and the deletion of all do to other clients. Prints a table of figures and limits; exit status 1 when a limit is
missed. CPU is that of the node's process, all threads; waits are those of basic.get on another connection, as the clock has
them, and without the time in which the node or that client stood in line for a processor: the latter is what a machine
with other work adds.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import gzip
import json
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from bench import procfs
from bench.amqp_line import Line
from bench.peers import PEERS, Node, Setting

MB = 1 << 20
PROBE_GAP_S = 0.002
AUTHORIZATION = "Basic " + base64.b64encode(b"guest:guest").decode()
# Each list page, CPU and seconds to its last byte.
PAGE_CPU_MS, PAGE_MS = 100.0, 200.0
WAIT_MS = 50.0
# What lies unused at two looks, of which each is taken after five seconds, is given back.
GIVEN_BACK_S = 11.0
# Three samples of everything are taken in that time.
IDLE_S, IDLE_PERCENT = 15.0, 1.0


@dataclass
class Table:
    """Figures in the order in which they came."""

    rows: list[tuple[str, float, float | None, str]] = field(default_factory=list)

    def add(self, title: str, value: float, limit: float | None, unit: str) -> None:
        self.rows.append((title, value, limit, unit))
        print(f"  {title}: {value:,.1f} {unit}", file=sys.stderr, flush=True)

    def missed(self) -> bool:
        return any(limit is not None and value > limit for _, value, limit, _ in self.rows)

    def markdown(self) -> str:
        lines = ["| figure | measured | limit |", "|---|---|---|"]
        for title, value, limit, unit in self.rows:
            mark = " **missed**" if limit is not None and value > limit else ""
            text = "" if limit is None else f"{limit:,.0f} {unit}"
            lines.append(f"| {title} | {value:,.1f} {unit}{mark} | {text} |")
        return "\n".join(lines)


def cpu_ns(pid: int) -> int:
    """CPU of all threads that live, to the nanosecond."""
    total = 0
    for task in (Path("/proc") / str(pid) / "task").iterdir():
        with contextlib.suppress(OSError):
            total += int((task / "schedstat").read_text().split()[0])
    return total


def _idle_percent(pid: int) -> float:
    """What the node takes of one processor while nobody asks anything: figures are sampled, and that is all."""
    before, began = cpu_ns(pid), time.monotonic()
    time.sleep(IDLE_S)
    return (cpu_ns(pid) - before) / 1e7 / (time.monotonic() - began)


def _setting(node: Node, key: str) -> str:
    found = [each for each in node.launch.command if each.startswith(f"{key}=")]
    return found[0].partition("=")[2]


class Http:
    """The node's HTTP API and metrics."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._api = f"http://127.0.0.1:{_setting(node, 'management.tcp.port')}"
        self._metrics = f"http://127.0.0.1:{_setting(node, 'prometheus.tcp.port')}"

    def ask(self, path: str, method: str = "GET", body: object = None) -> bytes:
        root = self._metrics if path.startswith("/metrics") else self._api
        request = urllib.request.Request(root + path, method=method)
        request.add_header("Authorization", AUTHORIZATION)
        request.add_header("Accept-Encoding", "gzip")
        if body is not None:
            request.data = body if isinstance(body, bytes) else json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=600) as answer:
            return answer.read()

    def plain(self, path: str, method: str = "GET", body: object = None) -> bytes:
        """What `ask` gets, unpacked."""
        return _plain(self.ask(path, method, body))

    def cost(self, path: str, rounds: int = 3) -> tuple[float, float]:
        """Milliseconds of the node's CPU and of the clock: the least of some rounds, after a first one."""
        self.ask(path)
        cpu, clock = [], []
        for _ in range(rounds):
            before, began = cpu_ns(self._node.pid), time.monotonic()
            self.ask(path)
            clock.append((time.monotonic() - began) * 1e3)
            cpu.append((cpu_ns(self._node.pid) - before) / 1e6)
        return min(cpu), min(clock)


def _probe(port: int, node_pid: int, pipe: Connection) -> None:
    line = Line(port)
    own_pid = os.getpid()
    waits: list[tuple[float, float]] = []
    while True:
        if pipe.poll():
            if pipe.recv() == "end":
                return
            pipe.send(waits)
            waits = []
        before = procfs.queued_s(node_pid) + procfs.queued_s(own_pid)
        wait = line.get_s("probe")
        queued = procfs.queued_s(node_pid) + procfs.queued_s(own_pid) - before
        waits.append((wait, max(0.0, wait - queued)))
        time.sleep(PROBE_GAP_S)


def _p99(ordered: list[float]) -> float:
    return statistics.quantiles(ordered, n=100)[98] if len(ordered) > 99 else ordered[-1]


class Probe:
    """A client in a process of its own that asks for a message again and again."""

    def __init__(self, node: Node) -> None:
        line = Line(node.port)
        line.declare(["probe"], durable=True)
        line.close()
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.Process(
            target=_probe, args=(node.port, node.pid, theirs), daemon=True
        )
        self._process.start()
        # It answers the second question when it has got something once: what a first time costs is not measured.
        self.waits_ms()
        self.waits_ms()

    def waits_ms(self) -> list[tuple[float, float]]:
        """How long it has waited each time since the last question: by the clock, and see the module."""
        self._pipe.send("tell")
        return [(wait * 1e3, alone * 1e3) for wait, alone in self._pipe.recv()]

    def end(self) -> None:
        self._pipe.send("end")
        self._process.join()

    def during(self, table: Table, title: str, act: Callable[[], object], limit: float) -> None:
        self.waits_ms()
        began = time.monotonic()
        act()
        seconds = time.monotonic() - began
        waits, alone = (sorted(each) for each in zip(*self.waits_ms(), strict=True))
        table.add(f"{title}: takes", seconds, None, "s")
        table.add(f"{title}: basic.get p99", _p99(waits), limit, "ms")
        table.add(f"{title}: basic.get p99, with a processor", _p99(alone), limit, "ms")
        table.add(f"{title}: basic.get longest", waits[-1], None, "ms")


@contextlib.contextmanager
def fresh_node(scratch: Path, name: str, commit_log: str) -> Iterator[Node]:
    """A node with nothing in it; its process is killed in the end."""
    setting = Setting(default_mode="bounded", commit_log=commit_log)
    node = PEERS["burrowmq"].node(scratch / name, setting)
    node.start()
    try:
        yield node
    finally:
        node.kill()


def _page_paths(count: int) -> list[str]:
    page = "page=1&page_size=100"
    return [
        f"/api/queues?{page}",
        f"/api/queues?page={count // 200}&page_size=100&sort=name",
        f"/api/queues?{page}&sort=messages&sort_reverse=true",
        f"/api/queues?{page}&sort=message_stats.publish_details.rate&sort_reverse=true",
        f"/api/queues?{page}&sort=memory",
        f"/api/queues?{page}&name=777&use_regex=false",
        f"/api/queues?{page}&name=7.*9%24&use_regex=true",
        f"/api/queues?{page}&columns=name,messages",
        f"/api/exchanges?{page}",
        f"/api/connections?{page}",
        f"/api/burrowmq/pages/connections?{page}",
        f"/api/burrowmq/pages/channels?{page}",
        f"/api/burrowmq/pages/consumers?{page}",
        f"/api/burrowmq/pages/policies?{page}",
        "/api/burrowmq/pages/overview",
        "/api/burrowmq/pages/queue/%2F/q-00777",
        "/api/overview",
        "/api/vhosts",
    ]


def measure_empty(
    table: Table, scratch: Path, count: int, commit_log: str, *, is_short: bool
) -> None:
    """The node with empty queues."""
    names = [f"q-{number:05}" for number in range(count)]
    with fresh_node(scratch, "empty", commit_log) as node:
        line, http = Line(node.port), Http(node)
        empty_rss = procfs.rss_bytes(node.pid)
        began = time.monotonic()
        line.declare(names, durable=True)
        table.add(f"declare {count:,} queues", time.monotonic() - began, None, "s")
        procfs.wait_idle(node.pid)
        rss = procfs.rss_bytes(node.pid)
        table.add("RSS", rss / MB, 400, "MB")
        table.add("a queue", (rss - empty_rss) / count, None, "B")
        line.bind("amq.direct", names[::10])
        table.add("nobody asks anything: CPU", _idle_percent(node.pid), IDLE_PERCENT, "%")
        probe = Probe(node)
        probe.during(table, "idle", lambda: time.sleep(6), WAIT_MS)
        for path in _page_paths(count):
            cpu, clock = http.cost(path)
            table.add(f"{path} CPU", cpu, PAGE_CPU_MS, "ms")
            table.add(f"{path} answered", clock, PAGE_MS, "ms")
        cpu, clock = http.cost("/metrics")
        table.add("/metrics", clock, 200, "ms")
        cpu, clock = http.cost("/api/queues/%2F/q-00777/bindings", 10)
        table.add("bindings of one queue, CPU", cpu, 5, "ms")

        def pages() -> None:
            for path in _page_paths(count):
                http.ask(path)

        probe.during(table, "all pages in a row", pages, WAIT_MS)
        if not is_short:
            probe.during(
                table, "per-object metrics", lambda: http.ask("/metrics/per-object"), WAIT_MS
            )
            probe.during(table, "whole list of queues", lambda: http.ask("/api/queues"), WAIT_MS)
            probe.during(
                table, "whole list of bindings", lambda: http.ask("/api/bindings"), WAIT_MS
            )
        exported: list[bytes] = []
        probe.during(
            table,
            "definitions export",
            lambda: exported.append(http.ask("/api/definitions")),
            WAIT_MS,
        )
        probe.during(
            table,
            "definitions import, nothing new",
            lambda: http.ask("/api/definitions", "POST", _plain(exported[0])),
            WAIT_MS,
        )
        _policy(table, probe, http)
        _vhost(table, probe, http, count)
        procfs.wait_idle(node.pid)
        table.add("RSS after all that", procfs.rss_bytes(node.pid) / MB, None, "MB")
        probe.end()
        line.close()
        began = time.monotonic()
        node.stop()
        table.add("stop", time.monotonic() - began, 3, "s")
        node.start()
        table.add("start after a clean stop", node.ready_s, 6, "s")
        procfs.wait_idle(node.pid)
        table.add("RSS after the start", procfs.rss_bytes(node.pid) / MB, 400, "MB")
        node.kill()
        node.start()
        table.add("start after kill -9", node.ready_s, None, "s")


def _plain(body: bytes) -> bytes:
    return gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body


def _policy(table: Table, probe: Probe, http: Http) -> None:
    policy = {"pattern": "^q-", "definition": {"max-length": 1000}, "apply-to": "queues"}
    path = "/api/policies/%2F/all"
    probe.during(table, "a policy on all", lambda: http.ask(path, "PUT", policy), WAIT_MS)
    probe.during(table, "the policy deleted", lambda: http.ask(path, "DELETE"), WAIT_MS)


def _vhost(table: Table, probe: Probe, http: Http, count: int) -> None:
    """Another virtual host, with as many queues: made by an import, and deleted with all of them."""
    http.ask("/api/vhosts/many", "PUT", {})
    queues = [{"name": f"q-{n:05}", "vhost": "many", "arguments": {}} for n in range(count)]
    document = json.dumps({"queues": queues}).encode()
    probe.during(
        table,
        f"import of {count:,} queues",
        lambda: http.ask("/api/definitions", "POST", document),
        WAIT_MS,
    )
    probe.during(
        table,
        "their virtual host deleted",
        lambda: http.ask("/api/vhosts/many", "DELETE"),
        WAIT_MS,
    )


def measure_small(table: Table, scratch: Path, count: int, commit_log: str) -> None:
    """The node with a message in each queue."""
    names = [f"q-{number:05}" for number in range(count)]
    with fresh_node(scratch, "small", commit_log) as node:
        procfs.wait_idle(node.pid)
        empty = procfs.rss_bytes(node.pid)
        line = Line(node.port)
        line.declare(names, durable=True)
        began = time.monotonic()
        line.publish(names, b"x" * 100)
        table.add(f"{count:,} x one message: published", time.monotonic() - began, None, "s")
        procfs.wait_idle(node.pid)
        table.add("memory over the empty node", (procfs.rss_bytes(node.pid) - empty) / MB, 60, "MB")
        table.add("disk", procfs.disk_bytes(node.launch.data_directory) / MB, 40, "MB")
        entries = sum(len(each[1]) + len(each[2]) for each in os.walk(node.launch.data_directory))
        table.add("files and directories", entries, None, "")
        line.close()
        node.kill()
        node.start()
        table.add("start after kill -9", node.ready_s, 4, "s")
        procfs.wait_idle(node.pid)
        table.add(
            "memory over the empty node, started",
            (procfs.rss_bytes(node.pid) - empty) / MB,
            60,
            "MB",
        )
        probe, http = Probe(node), Http(node)
        probe.during(table, "a list", lambda: http.ask("/api/queues"), WAIT_MS)
        _policy(table, probe, http)
        document = json.dumps(
            {
                "queues": [
                    {
                        "name": f"new-{n}",
                        "vhost": "/",
                        "durable": True,
                        "auto_delete": False,
                        "arguments": {},
                    }
                    for n in range(count)
                ]
            }
        ).encode()
        probe.during(
            table,
            f"import of {count:,} new queues",
            lambda: http.ask("/api/definitions", "POST", document),
            WAIT_MS,
        )
        line = Line(node.port)
        everything = [*names, *(f"new-{n}" for n in range(count))]
        probe.during(table, "deletion of all", lambda: line.delete(everything), WAIT_MS)
        time.sleep(GIVEN_BACK_S)
        procfs.wait_idle(node.pid)
        table.add("memory left after deletion", (procfs.rss_bytes(node.pid) - empty) / MB, 20, "MB")
        probe.end()
        node.stop()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.many_queues", description=__doc__)
    parser.add_argument("--queues", type=int, default=100_000)
    parser.add_argument("--small", type=int, default=10_000)
    parser.add_argument("--commit-log", choices=("off", "on"), default="on")
    parser.add_argument("--short", action="store_true", help="without the lists of everything")
    options = parser.parse_args()
    table, scratch = Table(), Path(tempfile.mkdtemp(prefix="many-queues-"))
    try:
        if options.queues:
            measure_empty(
                table, scratch, options.queues, options.commit_log, is_short=options.short
            )
        if options.small:
            measure_small(table, scratch, options.small, options.commit_log)
    finally:
        shutil.rmtree(scratch)
        print(table.markdown())
    return 1 if table.missed() else 0


if __name__ == "__main__":
    sys.exit(main())
