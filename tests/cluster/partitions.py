"""Networks cut under load: `python -m tests.cluster.partitions [--cuts 20] [--seed 1] [--kinds server,...]`.

Three servers and two front-ends, all of which reach each other through proxies of ours (`tests.support.gates`). Clients as
in `tests.cluster.kills`, two publishers and two consumers for each of three queues, one of each at each front-end, where they stay. A cut lasts
one to twelve seconds. It is one with resets, or a silent one: what was sent meanwhile arrives when it is over.

    server      a server does not reach the two others; front-ends reach all three
    minority    a server and a front-end see each other, and nobody else
    split       no server reaches another
    front-end   a front-end reaches no server
    link        a front-end does not reach one of the servers
    half        what a server says to the others does not arrive, or what they say to it; or so between a front-end and all servers
    paused      a server is stopped (SIGSTOP), and comes back with what it knew
    two-paused  two of the three are

No confirm may come from who has no majority: of what was published after the cut to the front-end of `minority`,
`front-end` and such a `half`, or to any in `split` and `two-paused`. The rest of what is counted: `tests.cluster.ledger`.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.nats_servers import NatsCluster, NatsServer
from tests.cluster.ledger import Ledger, Verdict
from tests.cluster.scene import NAMES, Load, Scene, end_with_sigterm
from tests.support.gates import Gates, State

KINDS = ("server", "minority", "split", "front-end", "link", "half", "paused", "two-paused")
SERVERS = ("n1", "n2", "n3")
SIZES = (64, 64, 256)
LASTS_S = (1.0, 12.0)
UP_S = (1.0, 5.0)
PROBE_EVERY = 10


class Partitions:
    """The cuts of one scene."""

    def __init__(self, scene: Scene, gates: Gates, chance: random.Random) -> None:
        self._scene = scene
        self._gates = gates
        self._chance = chance
        self._paused_servers: list[NatsServer] = []

    def cut(self, kind: str) -> None:
        """One of this kind, from its beginning to its end."""
        state = self._chance.choice((State.RESET, State.SILENT))
        alone = getattr(self, f"_{kind.replace('-', '_')}")(state)
        ledgers = [self._scene.publishers[number].ledger for number in self._publishers(alone)]
        marks: list[tuple[Ledger, int]] = [(each, each.published) for each in ledgers]
        has_state = kind not in {"half", "paused", "two-paused"}
        self._scene.count(f"{kind}, {state.value}" if has_state else kind)
        self._scene.wait(self._chance.uniform(*LASTS_S))
        self._scene.book.minority += sum(ledger.confirmed_from(mark) for ledger, mark in marks)
        self._gates.open()
        while self._paused_servers:
            self._paused_servers.pop().resume()
        self._scene.wait(self._chance.uniform(*UP_S))

    def _publishers(self, alone: Sequence[str]) -> list[int]:
        """Of which front-ends: as `Scene` numbers them."""
        count = len(self._scene.publishers)
        return [number for number in range(count) if NAMES[number % 2] in alone]

    # Each gives the front-ends that have no majority meanwhile.

    def _server(self, state: State) -> Sequence[str]:
        alone = self._chance.choice(SERVERS)
        self._between([alone], _without(SERVERS, alone), state)
        return ()

    def _minority(self, state: State) -> Sequence[str]:
        server, name = self._chance.choice(SERVERS), self._chance.choice(NAMES)
        others, other = _without(SERVERS, server), _without(NAMES, name)
        self._between([server, name], others, state)
        self._between([server], other, state)
        return (name,)

    def _split(self, state: State) -> Sequence[str]:
        for server in SERVERS:
            self._between([server], _without(SERVERS, server), state)
        return NAMES

    def _front_end(self, state: State) -> Sequence[str]:
        name = self._chance.choice(NAMES)
        self._between([name], SERVERS, state)
        return (name,)

    def _link(self, state: State) -> Sequence[str]:
        self._between([self._chance.choice(NAMES)], [self._chance.choice(SERVERS)], state)
        return ()

    def _half(self, _: State) -> Sequence[str]:
        is_front_end = self._chance.random() < 0.5
        one = self._chance.choice(NAMES if is_front_end else SERVERS)
        is_from = self._chance.random() < 0.5
        for other in _without(SERVERS, one):
            self._gates.silence(*((one, other) if is_from else (other, one)))
        return (one,) if is_front_end else ()

    def _paused(self, _: State) -> Sequence[str]:
        self._pause(1)
        return ()

    def _two_paused(self, _: State) -> Sequence[str]:
        self._pause(2)
        return NAMES

    def _pause(self, count: int) -> None:
        for server in self._chance.sample(self._scene.cluster.servers, count):
            server.pause()
            self._paused_servers.append(server)

    def _between(self, these: Sequence[str], those: Sequence[str], state: State) -> None:
        for one in these:
            for other in those:
                self._gates.set(one, other, state)


def _without(names: Sequence[str], one: str) -> list[str]:
    return [name for name in names if name != one]


def run(
    directory: Path, *, cuts: int, seed: int, rate: float = 900.0, kinds: Sequence[str] = KINDS
) -> Verdict:
    """So many cuts, of these kinds in turn. Raises: AssertionError when a publisher is confirmed nothing after a cut."""
    chance = random.Random(seed)
    gates = Gates()
    try:
        cluster = NatsCluster(
            directory / "nats",
            way=lambda source, target, port: gates.add(SERVERS[source], SERVERS[target], port),
        )
        ports = [
            [gates.add(name, each.name, each.port) for each in cluster.servers] for name in NAMES
        ]
        urls = [",".join(f"nats://127.0.0.1:{port}" for port in each) for each in ports]
        load = Load(SIZES, rate, burst=50, window=400, prefetch=300, stays=True)
        with Scene(directory, cluster, load, urls) as scene:
            partitions = Partitions(scene, gates, chance)
            scene.wait(2.0)
            for number in range(cuts):
                partitions.cut(kinds[number % len(kinds)])
                if number % PROBE_EVERY == PROBE_EVERY - 1:
                    assert scene.confirms_of_all(), "each publisher is confirmed again"
            assert scene.confirms_of_all(), "each publisher is confirmed again"
            return scene.settle()
    finally:
        gates.close()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.partitions", description=__doc__)
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=900.0, help="messages a second")
    parser.add_argument("--kinds", default=",".join(KINDS), help="of these, in turn")
    asked = parser.parse_args(arguments)
    end_with_sigterm()
    with tempfile.TemporaryDirectory(prefix="burrowmq-partitions-") as directory:
        found = run(
            Path(directory),
            cuts=asked.cuts,
            seed=asked.seed,
            rate=asked.rate,
            kinds=asked.kinds.split(","),
        )
    print(found)
    return 0 if found.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
