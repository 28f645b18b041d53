"""The power of one server, or of all, cut under load: `python -m tests.cluster.power_cuts [--one 20] [--all 20]`.

Each server's store is a small file system of its own, whose power is cut as in `tests.crash.power_cuts`: what no sync
had made durable is gone, be it pages, sizes, names or directories; mostly a thread writes some pages back meanwhile, in
no order. The server is stopped before, so that it says nothing of a dead disk, and killed after; the file system is
mounted again and the server started. Clients as in `tests.cluster.kills`; front-ends live on. The next cut comes when
all servers have what the streams' leaders have; with `--overlap` it does not wait for that. Needs root and loop devices.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.nats_servers import NatsCluster, NatsServer
from tests.cluster.ledger import Verdict
from tests.cluster.scene import Load, Scene, end_with_sigterm
from tests.crash.power_cuts import KINDS, CutDisk, Writeback, reason_against
from tests.support.patience import patient

SIZES = (64, 64, 256)
DOWN_S = 2.0
UP_S = (0.5, 3.0)
CURRENT_S = 90.0
PAUSE_S = 4.0


class Powered:
    """The servers with their disks."""

    def __init__(
        self,
        directory: Path,
        cluster: NatsCluster,
        kind: str,
        chance: random.Random,
        share_back: float,
    ) -> None:
        """In this share of the time pages are written back."""
        self._share_back = share_back
        self._chance = chance
        self._disks: dict[str, CutDisk] = {}
        self._writers: dict[str, Writeback] = {}
        try:
            for server in cluster.servers:
                self._disks[server.name] = CutDisk(directory / server.name, kind)
                self._write_back(server)
        except BaseException:
            self.close()
            raise

    def _write_back(self, server: NatsServer) -> None:
        if self._chance.random() < self._share_back:
            writer = Writeback(self._disks[server.name].place, self._chance.randrange(1 << 30))
            self._writers[server.name] = writer
            writer.start()

    def cut(self, servers: Sequence[NatsServer]) -> None:
        """The power is gone, at all of them at once; then it is there again."""
        for server in servers:
            server.pause()
        for server in servers:
            self._disks[server.name].cut()
        for server in servers:
            server.kill()
            if writer := self._writers.pop(server.name, None):
                writer.end()
            self._disks[server.name].restore()
            self._write_back(server)

    def close(self) -> None:
        """After the servers have ended."""
        for writer in self._writers.values():
            writer.end()
        for disk in self._disks.values():
            disk.close()
            shutil.rmtree(disk.place, ignore_errors=True)


def run(
    directory: Path,
    *,
    one: int,
    every: int,
    seed: int,
    rate: float = 600.0,
    kind: str = "ext4",
    sync: str = "always",
    share_back: float = 0.7,
    up_s: tuple[float, float] = UP_S,
    overlaps: bool = False,
) -> Verdict:
    """So many cuts of one server, so many of all. Raises: AssertionError when nothing is confirmed after one."""
    chance = random.Random(seed)
    cluster = NatsCluster(directory / "nats", sync=sync)
    powered = Powered(directory / "nats", cluster, kind, chance, share_back)
    load = Load(SIZES, rate, burst=100, window=1_000, prefetch=300, pause_s=PAUSE_S)
    order = [False] * one + [True] * every
    chance.shuffle(order)
    try:
        with Scene(directory, cluster, load) as scene:
            for number, is_all in enumerate(order):
                if not overlaps:
                    assert scene.until(scene.are_current, patient(CURRENT_S)), "all catch up"
                scene.wait(chance.uniform(*up_s))
                servers = cluster.servers if is_all else [chance.choice(cluster.servers)]
                powered.cut(servers)
                scene.wait(chance.uniform(0.0, DOWN_S))
                for server in servers:
                    server.start()
                scene.count("of all" if is_all else "of one")
                if is_all or number % 5 == 4:
                    assert scene.confirms_of_all(patient(60)), "each publisher is confirmed again"
            return scene.settle()
    finally:
        powered.close()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.power_cuts", description=__doc__)
    parser.add_argument("--one", type=int, default=20, help="cuts of one server")
    parser.add_argument("--all", type=int, default=20, help="cuts of all three at once")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=600.0, help="messages a second")
    parser.add_argument("--kind", choices=KINDS, default="ext4")
    parser.add_argument(
        "--overlap", action="store_true", help="cut the next although one has not caught up"
    )
    parser.add_argument("--sync", default="always", help="the servers' sync_interval")
    asked = parser.parse_args(arguments)
    end_with_sigterm()
    if reason := reason_against(asked.kind):
        parser.error(reason)
    with tempfile.TemporaryDirectory(prefix="burrowmq-cuts-") as directory:
        found = run(
            Path(directory),
            one=asked.one,
            every=asked.all,
            seed=asked.seed,
            rate=asked.rate,
            kind=asked.kind,
            sync=asked.sync,
            overlaps=asked.overlap,
        )
    print(found)
    return 0 if found.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
