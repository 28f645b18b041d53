"""Makes the archives of a release: `python -m tests.support.store_archives.make --server PATH --release 0.2.0`.

PATH is the `burrowmq-server` of that release (its own checkout, or where pip put it): the node runs in a process of its
own and is only spoken to. It is filled twice, stopped once and killed once; then each archive is unpacked and opened by
the same server, which has to find what the manifest says before anybody else is asked to.
State: nodes below a temporary directory, gone at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.broker_process import READY_TEXT, START_TIMEOUT_S, STOP_TIMEOUT_S
from tests.support.die_with_parent import dying
from tests.support.ports import free_port
from tests.support.store_archives import contents, reading
from tests.support.store_archives.archive import STORES, Archive
from tests.support.store_archives.filling import Filling
from tests.support.store_archives.reading import Row

# Acknowledgements are written once a queue has been idle for a fifth of a second.
AT_REST_S = 3.0
LARGEST_B = 300_000

Settings = dict[str, str]


class Node:
    """The release's server on a data directory."""

    def __init__(self, server: Path, data_dir: Path, settings: Settings) -> None:
        self.amqp_port, self.management_port = free_port(), free_port()
        self.data_dir = data_dir
        self.log_path = data_dir.with_suffix(".log")
        command = [str(server), "--data-dir", str(data_dir)]
        for setting in (
            f"listeners.tcp.default=127.0.0.1:{self.amqp_port}",
            "management.tcp.ip=127.0.0.1",
            f"management.tcp.port={self.management_port}",
            "prometheus.tcp.ip=127.0.0.1",
            f"prometheus.tcp.port={free_port()}",
            *(f"{key}={value}" for key, value in settings.items()),
        ):
            command += ["--set", setting]
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                dying(command), cwd=data_dir.parent, stdout=log, stderr=log, start_new_session=True
            )
        self._wait()

    def _wait(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while READY_TEXT not in self.log_path.read_text(errors="replace"):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(self.log_path.read_text(errors="replace"))
            time.sleep(0.02)

    def stop(self) -> None:
        """End it with SIGTERM."""
        self.process.terminate()
        if self.process.wait(STOP_TIMEOUT_S):
            raise RuntimeError(self.log_path.read_text(errors="replace"))

    def kill(self) -> None:
        """End it as a crash does."""
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def running(server: Path, data_dir: Path, settings: Settings) -> Iterator[Node]:
    """Give a node that is killed at the end if it still runs."""
    node = Node(server, data_dir, settings)
    try:
        yield node
    finally:
        node.kill()


def everything(node: Node) -> list[Filling]:
    """Fill a node with one of everything."""
    return contents.fill(node.amqp_port, node.management_port)


def levels(node: Node) -> list[Filling]:
    """Fill a node with priority queues, and names like those of their levels."""
    return contents.fill_levels(node.amqp_port)


def stop(node: Node, queues: list[Row]) -> None:
    """End a node cleanly: the queues are as they were left."""
    del queues
    node.stop()


def kill(node: Node, queues: list[Row]) -> None:
    """End a node as a crash does, once the acknowledgements are in its files: what it leaves counts as redelivered."""
    at_rest(node.data_dir)
    node.kill()
    reading.mark_crashed(queues)


def at_rest(data_dir: Path) -> None:
    """Wait until nothing in a data directory has changed for a while."""
    seen: dict[str, tuple[int, int]] = {}
    since = time.monotonic()
    while time.monotonic() - since < AT_REST_S:
        now = {}
        for path in data_dir.rglob("*"):
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                now[str(path)] = (status.st_mtime_ns, status.st_size)
        if now != seen:
            seen, since = now, time.monotonic()
        time.sleep(0.1)


class Case(NamedTuple):
    """How one archive is made."""

    fill: Callable[[Node], list[Filling]]
    end: Callable[[Node, list[Row]], None]
    settings: Settings = {}


WITH_LOG = {"store_commit_log": "on"}
ARCHIVES = {
    "clean": Case(everything, stop),
    "killed": Case(everything, kill),
    "nul": Case(levels, kill),
    "clean-log": Case(everything, stop, WITH_LOG),
    "killed-log": Case(everything, kill, WITH_LOG),
}


def make(server: Path, archive: Archive, made_by: str, folder: Path) -> None:
    """Make one archive."""
    fill, end, settings = ARCHIVES[archive.name]
    data_dir = folder / archive.name
    with running(server, data_dir, settings) as node:
        fillings = fill(node)
        filled = time.monotonic()
        definitions = reading.lasting(reading.definitions(node.management_port))
        queues = [row for filling in fillings for row in filling.rows.values()]
        end(node, queues)
        if time.monotonic() - filled > contents.SOON_MS / 2000:
            raise RuntimeError("too slow: what shall expire in the archive did so before")
    manifest: dict[str, Any] = {
        "made_by": made_by,
        "ended_by": end.__name__,
        "settings": settings,
        "queues": queues,
        "definitions": definitions,
    }
    archive.pack(data_dir, manifest)
    time.sleep(max(0.0, filled + contents.SOON_MS / 1000 + 1 - time.monotonic()))
    verify(server, archive, folder / f"{archive.name}-again")


def verify(server: Path, archive: Archive, data_dir: Path) -> None:
    """Open an archive with the server that wrote it. Raises AssertionError with the first difference."""
    archive.unpack(data_dir)
    manifest = archive.manifest()
    with running(server, data_dir, manifest["settings"]) as node:
        reading.check(node.amqp_port, node.management_port, manifest)
        node.stop()


def main() -> None:
    """Make what the command line asks for."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--server", type=Path, required=True, help="the release's burrowmq-server")
    parser.add_argument("--release", required=True, help="the folder below tests/data/stores")
    parser.add_argument("--made-by", default="", help="the commit or version, for the manifest")
    parser.add_argument("names", nargs="*", help=f"default: {' '.join(ARCHIVES)}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or ARCHIVES:
            archive = Archive(STORES / options.release, name)
            make(options.server.absolute(), archive, options.made_by, Path(folder))
            size = archive.tar_path.stat().st_size
            if size > LARGEST_B:
                raise RuntimeError(f"{archive.tar_path}: {size} B is too much for the repository")
            sys.stdout.write(f"{archive.tar_path} {size} B\n")


if __name__ == "__main__":
    main()
