"""A private broker node: a process, its ports, its directory.

`Node` owns the process that it started, and stops it by its process id. It is made by a `Peer`,
used by `scenarios`, stopped by `runner`. A node can be stopped and started again on the same directory.
"""

import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bench.procfs import command_name, descendants

READY_LINE = "Server startup complete"
READY_LIMIT_S = 120.0


class NodeFailed(Exception):
    """A node did not start, or stopped by itself; the text holds the end of its log."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What one row asks of a node; peers that have no such choice ignore it."""

    default_mode: str = "cached"  # cached | bounded
    confirm: str = "fsync"  # fsync | written
    commit_log: str = ""  # off | on; empty: the node's default, which is on
    scrub_period: str = ""  # empty: the node's default
    scrub_rate: str = ""  # the same
    is_tls: bool = False  # a TLS listener beside the other
    busy_wait: str = ""  # off | auto; empty: the node's default, which is auto


@dataclass(slots=True)
class Launch:
    """How to start a node and how to speak to it."""

    command: list[str]
    environment: dict[str, str]
    directory: Path
    data_directory: Path
    port: int
    control: list[str]
    metrics_port: int | None = None
    tls_port: int = 0
    broker_command_name: str | None = (
        None  # name of the process that is the broker, when a script starts it
    )
    after_stop: Callable[[], None] | None = None


@dataclass(slots=True)
class Node:
    """One running node."""

    peer: str
    setting: Setting
    launch: Launch
    pid: int = 0
    ready_s: float = 0.0
    started_at: float = 0.0
    metrics_when_warm: str = ""
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def port(self) -> int:
        return self.launch.port

    @property
    def log_path(self) -> Path:
        return self.launch.directory / "node.log"

    def start(self) -> None:
        """Start and wait until the log says that the node serves; `ready_s` counts from exec."""
        self.spawn()
        self.await_ready()

    def spawn(self) -> None:
        """Start the process without waiting. `started_at` is on the monotonic clock."""
        self.launch.directory.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("wb") as log:
            self.started_at = time.monotonic()
            self._process = subprocess.Popen(
                self.launch.command,
                env={**os.environ, **self.launch.environment},
                cwd=self.launch.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self._process.pid

    def await_ready(self) -> None:
        """Wait for the ready line of the log."""
        process = self._running()
        while READY_LINE not in self.log_path.read_text(errors="replace"):
            if process.poll() is not None or time.monotonic() - self.started_at > READY_LIMIT_S:
                tail = self.log_path.read_text(errors="replace")[-1500:]
                self.kill()
                raise NodeFailed(f"{self.peer} did not start:\n{tail}")
            time.sleep(0.005)
        self.ready_s = time.monotonic() - self.started_at
        self.pid = self._broker_pid()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise NodeFailed(f"{self.peer} is not running")
        return self._process

    def _broker_pid(self) -> int:
        root = self._running().pid
        wanted = self.launch.broker_command_name
        if wanted is None or command_name(root) == wanted:
            return root
        return next((pid for pid in descendants(root) if command_name(pid) == wanted), root)

    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self, limit_s: float = 60.0) -> None:
        """Stop cleanly; a node that does not end is killed and reported."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            os.kill(self.pid, signal.SIGTERM)
            try:
                process.wait(limit_s)
            except subprocess.TimeoutExpired:
                self.kill()
                raise NodeFailed(f"{self.peer} did not stop within {limit_s:.0f} s") from None
        self._process = None
        if self.launch.after_stop is not None:
            self.launch.after_stop()

    def kill(self) -> None:
        """End it at once (SIGKILL), no clean-up."""
        process = self._process
        if process is None:
            return
        for pid in {self.pid, process.pid}:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()
        self._process = None
        if self.launch.after_stop is not None:
            self.launch.after_stop()

    def control(self, *arguments: str) -> str:
        """Output of the node's own command-line tool."""
        done = subprocess.run(
            [*self.launch.control, *arguments],
            env={**os.environ, **self.launch.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise NodeFailed(
                f"{self.launch.control[0]} {' '.join(arguments)}: {done.stderr[-400:]}"
            )
        return done.stdout

    def metrics_page(self) -> str:
        """The node's Prometheus page, '' when it has none."""
        if self.launch.metrics_port is None:
            return ""
        url = f"http://127.0.0.1:{self.launch.metrics_port}/metrics"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return str(answer.read().decode())


class Peer(Protocol):
    """One product in one speed."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    def version(self) -> str | None:
        """Version text, None when it is not installed here."""

    def node(self, directory: Path, setting: Setting) -> Node:
        """A node that is not started yet, with ports of its own."""

    def durability(self, setting: Setting) -> str:
        """What a confirm means in this setting, in words."""


def certificate(directory: Path) -> tuple[Path, Path]:
    """A self-signed certificate for this machine and its key, made in `directory`."""
    directory.mkdir(parents=True, exist_ok=True)
    found, key = directory / "certificate.pem", directory / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-out", str(found), "-keyout", str(key)]
    try:
        subprocess.run(command, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as failure:
        raise NodeFailed(f"TLS rows need openssl: {failure}") from failure
    return found, key


def free_ports(count: int) -> list[int]:
    """Ports nobody listens on now, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
    finally:
        for each in sockets:
            each.close()
