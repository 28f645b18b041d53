"""Where scenarios find their nodes: a pool of running ones and fresh ones on request.

Owns every node of a run and the scratch directory below which they live; `close()` stops all and removes it. Called by
`scenarios` (asks for nodes) and `runner` (owns the stage). A pooled node is shared by the rows with the same setting; a row that
measures memory or start-up takes a fresh one, because a broker that has held a large backlog pollutes what follows.
"""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import native, procfs
from bench.peers import PEERS, Node, Setting

WARM_UP_MESSAGES = 20_000


class Stage:
    """The nodes of one run of the benchmark."""

    def __init__(self, *, is_full: bool, scratch: Path | None = None, longer: int = 1) -> None:
        """`longer`: loads have so many times their messages."""
        self.is_full = is_full
        self.longer = longer
        self._root = Path(tempfile.mkdtemp(prefix="burrowmq-bench-", dir=scratch))
        self._pool: dict[tuple[str, Setting], Node] = {}
        self._made = 0

    @property
    def root(self) -> Path:
        return self._root

    def scaled(self, full: int, quick: int) -> int:
        """A count for `bench-full` or for the quick run."""
        return full if self.is_full else quick

    def make(self, peer: str, setting: Setting) -> Node:
        """A node in a directory of its own, not started. The caller stops it."""
        self._made += 1
        return PEERS[peer].node(self._root / f"{peer}-{self._made}", setting)

    def pooled(self, peer: str, setting: Setting) -> Node:
        """A warm node that stays up for the whole run; one that has died is replaced."""
        setting = _known_to(peer, setting)
        node = self._pool.get((peer, setting))
        if node is not None and node.is_alive():
            return node
        node = self.make(peer, setting)
        node.start()
        self._pool[peer, setting] = node
        self.warm_up(node)
        node.metrics_when_warm = node.metrics_page()
        return node

    @staticmethod
    def warm_up(node: Node) -> None:
        """Some messages through a queue that is deleted again; returns when the node is idle."""
        native.run(node.port, messages=WARM_UP_MESSAGES, consumers=1, name="warm-up", timeout=60)
        native.run(node.port, mode="delete", name="warm-up")
        procfs.wait_idle(node.pid)

    def running(self) -> list[Node]:
        """Pooled nodes that are alive."""
        return [node for node in self._pool.values() if node.is_alive()]

    @contextmanager
    def fresh(self, peer: str, setting: Setting) -> Iterator[Node]:
        """A node of this block's own, started and idle; gone with its directory afterwards."""
        node = self.make(peer, _known_to(peer, setting))
        try:
            node.start()
            procfs.wait_idle(node.pid)
            yield node
        finally:
            self.discard(node)

    def discard(self, node: Node) -> None:
        """End a node and remove its directory."""
        node.kill()
        shutil.rmtree(node.launch.directory, ignore_errors=True)

    def drop(self, peer: str) -> None:
        """Throw away a peer's pooled nodes, after a row that failed on them."""
        for key in [key for key in self._pool if key[0] == peer]:
            self.discard(self._pool.pop(key))

    def close(self) -> None:
        """Stop every node and remove all directories."""
        for node in self._pool.values():
            node.kill()
        self._pool.clear()
        shutil.rmtree(self._root, ignore_errors=True)


def _known_to(peer: str, setting: Setting) -> Setting:
    # Peers without our choices share one node for all rows, and one with TLS for those.
    return setting if peer.startswith("burrowmq") else Setting(is_tls=setting.is_tls)
