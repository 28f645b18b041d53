"""Runs a real BurrowMQ node as a process of its own and measures it from outside.

State: the process, its log file (in the data directory's parent) and the ports it was given.
Callers: the black-box fixture, crash harness, fuzzers and the headline test.
Invariants: knows nothing of the server's insides; a started process is stopped or killed by its own
id, and by the kernel when the test run dies; the data directory outlives the process, so that the next start finds what was written.
Source: the command-line contract in README (ready line, exit status, `--set` keys).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.die_with_parent import dying
from tests.support.patience import patient
from tests.support.ports import free_port
from tests.support.prepared_process import Forked, prepared

ROOT = Path(__file__).resolve().parents[2]
# Tests of other environments (Spark's) name the one that the broker runs in.
PYTHON = os.environ.get("BURROWMQ_TEST_PYTHON", sys.executable)
PROGRAM = (PYTHON, "-m", "burrowmq.broker")
BURROWCTL = Path(PYTHON).parent / "burrowctl"
READY_TEXT = "Server startup complete"
START_TIMEOUT_S = patient(60)
STOP_TIMEOUT_S = patient(60)
INVARIANT_BROKEN = 70
POLL_S = 0.005


@dataclass(frozen=True)
class Target:
    """What a black-box test may know of the broker it talks to."""

    host: str
    port: int
    product: str
    process: BrokerProcess | None = None
    vhost: str = "/"
    user: str = "guest"
    password: str = "guest"

    @property
    def url(self) -> str:
        """Return the address for clients that take one."""
        vhost = self.vhost.replace("/", "%2F")
        return f"amqp://{self.user}:{self.password}@{self.host}:{self.port}/{vhost}"

    def ctl(self, *arguments: str) -> str:
        """Run burrowctl, or the command in BURROWMQ_TEST_CTL for an outside broker."""
        if self.process is not None:
            return self.process.ctl(*arguments)
        command = os.environ["BURROWMQ_TEST_CTL"]
        done = subprocess.run([command, *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    @property
    def is_rabbitmq_3_10(self) -> bool:
        """Say whether the answers that changed up to 3.13 are the old ones."""
        return self.product == "rabbitmq"


@dataclass
class BrokerProcess:
    """One node: its data directory stays, its process may be started many times."""

    data_dir: Path
    settings: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    amqp_port: int = field(default_factory=free_port)
    management_port: int = field(default_factory=free_port)
    prometheus_port: int = field(default_factory=free_port)
    program: Sequence[str] = PROGRAM
    folder: Path = ROOT
    is_verified: bool = True
    """Whether it checks its invariants after each turn; benchmarks and figures of time or memory are taken without."""
    is_from_nothing: bool = False
    """Whether the program is started as an operator does it, and not forked with its modules loaded."""
    process: subprocess.Popen[bytes] | Forked | None = None
    ready_after_s: float = 0.0
    _log_start: int = 0

    @property
    def log_path(self) -> Path:
        """Return where the node's standard error goes, all starts in one file."""
        return self.data_dir.parent / f"{self.data_dir.name}.log"

    @property
    def url(self) -> str:
        """Return the node's AMQP address."""
        return f"amqp://guest:guest@127.0.0.1:{self.amqp_port}/%2F"

    def spawn(self) -> None:
        """Start the process without waiting for it to be ready."""
        values = {
            "listeners.tcp.default": f"127.0.0.1:{self.amqp_port}",
            "management.tcp.ip": "127.0.0.1",
            "management.tcp.port": str(self.management_port),
            "prometheus.tcp.ip": "127.0.0.1",
            "prometheus.tcp.port": str(self.prometheus_port),
            **self.settings,
        }
        argv = ["--data-dir", str(self.data_dir)]
        for key, value in values.items():
            argv += ["--set", f"{key}={value}"]
        verify = {"BURROWMQ_VERIFY": "1" if self.is_verified else "0"}
        environment = {**os.environ, **verify, **self.environment}
        self.data_dir.parent.mkdir(parents=True, exist_ok=True)
        self._log_start = self.log_path.stat().st_size if self.log_path.exists() else 0
        ready = prepared(PYTHON) if self.may_be_forked else None
        with self.log_path.open("ab") as log:
            if ready is not None:
                self.process = ready.start(argv, self.folder, environment, log.fileno())
                return
            self.process = subprocess.Popen(
                dying([*self.program, *argv]),
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def may_be_forked(self) -> bool:
        """Another program, another environment and figures of the process need a start from nothing."""
        is_usual = self.program == PROGRAM and self.folder == ROOT and not self.environment
        return is_usual and self.is_verified and not self.is_from_nothing

    def start(self) -> None:
        """Start the process and wait for its ready line."""
        began = time.monotonic()
        self.spawn()
        while time.monotonic() < began + START_TIMEOUT_S:
            if READY_TEXT in self.log_of_this_start():
                self.ready_after_s = time.monotonic() - began
                return
            if self.running().poll() is not None:
                break
            time.sleep(POLL_S)
        log = self.log_of_this_start()[-4000:]
        self.kill()
        raise RuntimeError(f"broker did not become ready:\n{log}")

    def running(self) -> subprocess.Popen[bytes] | Forked:
        """Return the process, which must have been started."""
        if self.process is None:
            raise RuntimeError("the broker was not started")
        return self.process

    @property
    def has_broken_an_invariant(self) -> bool:
        """Say whether the process ended because a check of its own state failed."""
        return self.process is not None and self.process.poll() == INVARIANT_BROKEN

    @property
    def is_alive(self) -> bool:
        """Say whether the process still runs."""
        return self.process is not None and self.process.poll() is None

    def stop(self) -> int:
        """Stop cleanly (SIGTERM) and return the exit status."""
        process = self.running()
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self) -> None:
        """End the process at once, as a crash would."""
        if self.process is not None:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait()

    def close(self) -> None:
        """Stop when still running; for the end of a test."""
        if self.is_alive:
            self.stop()

    def log_of_this_start(self) -> str:
        """Return what the current process has logged so far."""
        with self.log_path.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode("utf-8", "replace")

    def rss_bytes(self) -> int:
        """Return the resident set size now."""
        return _status_bytes(self.running().pid, "VmRSS:")

    def peak_rss_bytes(self) -> int:
        """Return the largest resident set size since start or `reset_peak`."""
        return _status_bytes(self.running().pid, "VmHWM:")

    def reset_peak(self) -> None:
        """Make the peak start again from the present size."""
        Path(f"/proc/{self.running().pid}/clear_refs").write_text("5")

    def disk_bytes(self) -> int:
        """Return what the data directory takes, as `du` counts (allocated blocks)."""
        total = 0
        for path in self.data_dir.rglob("*"):
            try:
                total += path.lstat().st_blocks * 512
            except FileNotFoundError:
                continue  # compaction removed it meanwhile
        return total

    def ctl(self, *arguments: str) -> str:
        """Run burrowctl on this node and return its standard output."""
        done = subprocess.run(
            [str(BURROWCTL), "--data-dir", str(self.data_dir), *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if done.returncode:
            raise RuntimeError(f"burrowctl {arguments}: {done.returncode} {done.stderr}")
        return done.stdout


def _status_bytes(pid: int, key: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no {key} for process {pid}")


def external_target() -> Target | None:
    """Return the broker named by BURROWMQ_TEST_URL, None when tests start their own."""
    url = os.environ.get("BURROWMQ_TEST_URL")
    if not url:
        return None
    place = url.split("@")[-1].removeprefix("amqp://").split("/")[0]
    host, _, port = place.partition(":")
    product = os.environ.get("BURROWMQ_TEST_PRODUCT", "burrowmq")
    return Target(host=host, port=int(port or 5672), product=product)
