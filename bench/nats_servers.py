"""Three nats-servers on loopback: started, paused, killed and started again, for `bench.cluster` and tests of `cluster`.

The program is the one that `BURROWMQ_NATS_SERVER` names, else one that is in the cache from before, else `build` makes it from
its Go module, which takes a minute: `python -m bench.nats_servers`. Without Go there is none, and `CannotBuild` says so.

State owned: the processes and their directory. Never touches a server that it did not start.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from bench.native import cache_directory
from bench.peers.base import free_ports

VERSION = "2.15.2"
MODULE = f"github.com/nats-io/nats-server/v2@v{VERSION}"
START_S = 20.0
NOBODY = 9
"""A port of loopback at which nobody listens."""

Way: TypeAlias = Callable[[int, int, int], int]


class CannotBuild(Exception):
    """There is no nats-server here, and none can be built; the text says why."""


def program() -> Path:
    """Path of a server's program that is there. Raises: CannotBuild."""
    named = os.environ.get("BURROWMQ_NATS_SERVER")
    if named and not os.access(named, os.X_OK):
        raise CannotBuild(f"BURROWMQ_NATS_SERVER names no program: {named}")
    path = Path(named) if named else cache_directory() / f"nats-server-{VERSION}"
    if not path.exists():
        raise CannotBuild(
            f"no nats-server {VERSION}: `python -m bench.nats_servers` builds it, BURROWMQ_NATS_SERVER names one"
        )
    return path


def build() -> Path:
    """Path of the server's program, which is built if there is none. Raises: CannotBuild."""
    with contextlib.suppress(CannotBuild):
        return program()
    go = shutil.which("go")
    if go is None:
        raise CannotBuild(
            f"building nats-server {VERSION} needs Go; or name one in BURROWMQ_NATS_SERVER"
        )
    unfinished = cache_directory() / f"nats-server.{os.getpid()}"
    environment = {**os.environ, "GOBIN": str(unfinished), "GOFLAGS": "-p=1", "CGO_ENABLED": "0"}
    done = subprocess.run(
        [go, "install", MODULE], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise CannotBuild(f"go install {MODULE} failed:\n{done.stderr}")
    built = cache_directory() / f"nats-server-{VERSION}"
    (unfinished / "nats-server").rename(built)
    shutil.rmtree(unfinished, ignore_errors=True)
    return built


class NatsServer:
    """One of the three."""

    def __init__(self, binary: Path, directory: Path, name: str, port: int) -> None:
        self.name = name
        self.port = port
        self._command = [str(binary), "--config", str(directory / f"{name}.conf")]
        self._log = directory / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None, "started"
        return self._process.pid

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and return when its port is open."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"{self.name} ended: {self._log.read_text()[-500:]}")
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            time.sleep(0.02)
        raise RuntimeError(f"{self.name} did not open its port in {START_S:.0f} s")

    def log_lines(self, count: int) -> list[str]:
        """The last ones, of all its starts."""
        return self._log.read_text(errors="replace").splitlines()[-count:]

    def kill(self) -> None:
        """End it as kill -9 does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def pause(self) -> None:
        """SIGSTOP."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)


class NatsCluster:
    """Three servers in `directory`; `sync` is JetStream's sync_interval, `binary` another program than the stock one.

    With `way` servers reach each other by the ports that it gives for (from, to, the port of to's own), as numbers
    from 0 on, and in no other way: what they tell each other of where they are leads nowhere.
    """

    def __init__(
        self,
        directory: Path,
        *,
        count: int = 3,
        sync: str = "always",
        way: Way | None = None,
        binary: Path | None = None,
    ) -> None:
        binary = binary or program()
        directory.mkdir(parents=True, exist_ok=True)
        ports = free_ports(2 * count)
        self.servers: list[NatsServer] = []
        advertised = "" if way is None else f'advertise: "127.0.0.1:{NOBODY}", no_advertise: true,'
        for number in range(count):
            name = f"n{number + 1}"
            goals = ports[count:]
            if way is not None:
                goals = [
                    way(number, other, goals[other]) for other in range(count) if other != number
                ]
            routes = ", ".join(f'"nats://127.0.0.1:{port}"' for port in goals)
            settings = f"""
server_name: {name}
listen: 127.0.0.1:{ports[number]}
max_payload: 8MB
jetstream {{ store_dir: "{directory / name}", sync_interval: {sync}, max_file_store: 20GB }}
cluster {{ name: bench, listen: 127.0.0.1:{ports[count + number]}, {advertised} routes: [{routes}] }}
"""
            (directory / f"{name}.conf").write_text(settings)
            self.servers.append(NatsServer(binary, directory, name, ports[number]))

    def start(self) -> None:
        for each in self.servers:
            each.start()

    def stop(self) -> None:
        """End all processes; what they have stored is of no use to anybody."""
        for each in self.servers:
            each.kill()

    def by_name(self, name: str) -> NatsServer:
        return next(each for each in self.servers if each.name == name)


def main() -> int:
    """Build the server, or say why not."""
    try:
        print(build())
    except CannotBuild as failure:
        print(f"NOT RUN: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
