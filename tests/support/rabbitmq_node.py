"""A private RabbitMQ node on loopback, the oracle that black-box tests are checked against first.

State: one directory (configuration, mnesia, logs, Erlang cookie) and the processes of one node with
an epmd of its own; nothing of a system installation is read or changed but its programs.
Callers: the black-box fixture, the crash harness and the benchmark when they are asked for RabbitMQ.
Invariants: listens on 127.0.0.1 only; every process it started is gone after `stop`, and by the kernel when who
started it dies without; the AMQP port plus 20000 and plus 30000 are used for distribution and epmd, so it must be below 35000.
Source: RabbitMQ's configuration and "file and directory locations" guides.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.die_with_parent import dying
from tests.support.ports import free_port, is_free

PROGRAMS = Path("/usr/lib/rabbitmq/bin")
START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 60


def is_installed() -> bool:
    """Say whether Debian's rabbitmq-server is on this machine."""
    return (PROGRAMS / "rabbitmq-server").exists()


def free_node_port() -> int:
    """Return a free port for AMQP whose two neighbours, for distribution and epmd, are free as well."""
    while True:
        port = free_port()
        if all(is_free(port + more) for more in (20000, 30000)):
            return port


class RabbitNode:
    """One private node; `start` returns when it accepts connections."""

    def __init__(
        self,
        directory: Path,
        amqp_port: int,
        *,
        management_port: int | None = None,
        config_lines: Sequence[str] = (),
        plugins: Sequence[str] = (),
    ) -> None:
        self.directory = directory
        self.amqp_port = amqp_port
        self.management_port = management_port
        self._config_lines = config_lines
        self.plugins = list(plugins)
        self._server: subprocess.Popen[bytes] | None = None
        self._epmd: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return the node's AMQP address."""
        return f"amqp://guest:guest@127.0.0.1:{self.amqp_port}/%2F"

    @property
    def environment(self) -> dict[str, str]:
        """Return what the RabbitMQ scripts need to find this node and no other."""
        base = {key: value for key, value in os.environ.items() if "RABBITMQ" not in key}
        place = str(self.directory)
        return base | {
            "HOME": place,
            "RABBITMQ_NODENAME": f"n{self.amqp_port}@localhost",
            "RABBITMQ_CONFIG_FILE": f"{place}/rabbitmq",
            "RABBITMQ_MNESIA_BASE": f"{place}/mnesia",
            "RABBITMQ_LOG_BASE": f"{place}/log",
            "RABBITMQ_DIST_PORT": str(self.amqp_port + 20000),
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{place}/plugins",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self.amqp_port + 30000),
        }

    def start(self) -> None:
        """Start the node's epmd and server and wait until clients are served."""
        for name in ("mnesia", "log"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)
        self._write_configuration()
        epmd = shutil.which("epmd") or "/usr/lib/erlang/bin/epmd"
        with (self.directory / "out").open("ab") as output:
            # Started here, not by the server as a daemon: so its process id is ours to stop.
            self._epmd = subprocess.Popen(
                dying([epmd]),
                cwd=self.directory,
                env=self.environment,
                stdout=output,
                stderr=output,
            )
            self._server = subprocess.Popen(
                dying([str(PROGRAMS / "rabbitmq-server")]),
                cwd=self.directory,
                # The script then becomes Erlang, as it does for systemd. A shell that waits for Erlang would be
                # all that ends with us.
                env=self.environment | {"RUNNING_UNDER_SYSTEMD": "true"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._server.poll() is not None:
                break
            started = subprocess.run(
                [str(PROGRAMS / "rabbitmqctl"), "-q", "await_startup", "--timeout", "60"],
                env=self.environment,
                capture_output=True,
                check=False,
            )
            if started.returncode == 0:
                return
        tail = (self.directory / "out").read_text(errors="replace")[-2000:]
        self.stop()
        raise RuntimeError(f"RabbitMQ did not start: {tail}")

    def ctl(self, *arguments: str) -> str:
        """Run rabbitmqctl on this node and return what it printed."""
        done = subprocess.run(
            [str(PROGRAMS / "rabbitmqctl"), *arguments],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"rabbitmqctl {arguments[0]}: {done.stdout}{done.stderr}")
        return done.stdout

    def stop(self) -> None:
        """Stop server and epmd; both are killed when they take too long."""
        for process in (self._server, self._epmd):
            if process is None or process.poll() is not None:
                continue
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._server = self._epmd = None

    def kill(self) -> None:
        """End the server at once, as a crash would; `start` finds what it has on disk."""
        for process in (self._server, self._epmd):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()
        self._server = self._epmd = None

    def _write_configuration(self) -> None:
        lines = [f"listeners.tcp.1 = 127.0.0.1:{self.amqp_port}", *self._config_lines]
        plugins = list(self.plugins)
        if self.management_port is not None:
            lines += [
                "management.tcp.ip = 127.0.0.1",
                f"management.tcp.port = {self.management_port}",
            ]
            plugins.append("rabbitmq_management")
        (self.directory / "rabbitmq.conf").write_text("\n".join(lines) + "\n")
        (self.directory / "plugins").write_text(f"[{','.join(plugins)}].\n")
        script = self.directory / "ctl"
        exports = "".join(
            f"export {key}='{value}'\n"
            for key, value in self.environment.items()
            if key == "HOME" or key.startswith(("RABBITMQ", "ERL"))
        )
        script.write_text(f'#!/bin/sh\n{exports}exec {PROGRAMS}/rabbitmqctl "$@"\n')
        script.chmod(0o755)


def main() -> int:
    """Run a node in the foreground: DIRECTORY AMQP_PORT [MANAGEMENT_PORT]."""
    directory, port, *rest = sys.argv[1:]
    node = RabbitNode(Path(directory), int(port), management_port=int(rest[0]) if rest else None)
    # A handler, not a blocked signal with sigwait: a blocked one would stay blocked in the server.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        node.start()
        sys.stdout.write(node.url + "\n")
        sys.stdout.flush()
        signal.pause()
    except KeyboardInterrupt:
        return 0
    finally:
        node.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
