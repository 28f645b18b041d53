"""Servers and front-ends killed (-9) under load: `python -m tests.cluster.kills [--servers 20] [--front-ends 20] [--messages 100000]`.

Two front-ends on three servers; four queues with two publishers each, which have up to 1,000 messages unconfirmed, and
a consumer, which acknowledges many at once, one by one, and gives some back. Servers and front-ends are killed independently of each other, each comes back
after up to three seconds; one time of twenty all three servers are killed at once. Clients go to the other front-end when their own dies.
The run goes on until so many are confirmed, and ends with empty queues. What is counted: `tests.cluster.ledger`.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from bench.nats_servers import NatsCluster
from tests.cluster.ledger import Verdict
from tests.cluster.scene import Load, Scene, end_with_sigterm

SIZES = (16, 64, 64, 256)
DOWN_S = 3.0
SERVER_UP_S, NODE_UP_S = (1.0, 4.0), (1.0, 5.0)


class ServerKiller(threading.Thread):
    """Kills servers, one after the other."""

    def __init__(self, scene: Scene, kills: int, seed: int) -> None:
        super().__init__(daemon=True)
        self._scene = scene
        self._kills = kills
        self._chance = random.Random(seed)
        self.over = threading.Event()
        self.error = ""

    def run(self) -> None:
        try:
            while self._scene.events.get("servers", 0) < self._kills:
                if self.over.wait(self._chance.uniform(*SERVER_UP_S)):
                    return
                self._kill()
        except Exception as error:
            self.error = repr(error)

    def _kill(self) -> None:
        servers = self._scene.cluster.servers
        if self._chance.random() < 0.95:
            servers = [self._chance.choice(servers)]
        for server in servers:
            server.kill()
        self.over.wait(self._chance.uniform(0.0, DOWN_S))
        for server in servers:
            server.start()
            self._scene.count("servers")


def kill_a_front_end(scene: Scene, chance: random.Random) -> None:
    """By the thread that lives longest: nodes end with the one that has started them."""
    node = chance.choice(scene.nodes)
    node.kill()
    time.sleep(chance.uniform(0.0, DOWN_S / 3))
    node.start()
    scene.count("front-ends")


def run(
    directory: Path, *, servers: int, front_ends: int, messages: int, rate: float, seed: int
) -> Verdict:
    """So many kills, and at least so many confirmed. Raises: AssertionError when nothing is confirmed any more."""
    load = Load(SIZES, rate, burst=500, window=2_000, prefetch=1_000)
    with Scene(directory, NatsCluster(directory / "nats"), load) as scene:
        killer, chance = ServerKiller(scene, servers, seed), random.Random(seed + 1)
        killer.start()
        try:
            moved, moved_s = 0, time.monotonic()
            while killer.is_alive() or front_ends or scene.confirmed < messages:
                scene.wait(chance.uniform(*NODE_UP_S))
                if front_ends:
                    kill_a_front_end(scene, chance)
                    front_ends -= 1
                assert not killer.error, killer.error
                if scene.confirmed > moved:
                    moved, moved_s = scene.confirmed, time.monotonic()
                assert time.monotonic() < moved_s + 180.0, "nothing is confirmed any more"
        finally:
            killer.over.set()
            killer.join()
        assert scene.confirms_of_all(), "each queue serves again"
        return scene.settle()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.kills", description=__doc__)
    parser.add_argument("--servers", type=int, default=20, help="kills of servers, at least")
    parser.add_argument("--front-ends", type=int, default=20)
    parser.add_argument("--messages", type=int, default=100_000, help="confirmed, at least")
    parser.add_argument("--rate", type=float, default=4_000.0, help="messages a second")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(arguments)
    end_with_sigterm()
    with tempfile.TemporaryDirectory(prefix="burrowmq-kills-") as directory:
        found = run(
            Path(directory),
            servers=asked.servers,
            front_ends=asked.front_ends,
            messages=asked.messages,
            rate=asked.rate,
            seed=asked.seed,
        )
    print(found)
    return 0 if found.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
