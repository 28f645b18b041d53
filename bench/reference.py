"""This checkout beside another commit of it, interleaved: `bench compare --ref COMMIT`.

Owns a git worktree in a temporary directory for the time of the measurement. Two result files of different days compare two
days; this compares two programs. Called by `__main__`.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench import runner
from bench.peers import PEERS
from bench.peers.burrowmq import BurrowMQ
from bench.results import Results

ROOT = Path(__file__).resolve().parents[1]
PEER = "burrowmq-ref"
_TOUCHED_BYTES = 1 << 30
_USUAL = ["publish-16", "publish-1k", "1p1c", "confirms-1k", "fanout", "lazy-1000"]


def _run(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ValueError(f"{' '.join(command[:3])} failed:\n{done.stderr[-800:]}")


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """A checkout of a commit, with its compiled modules. Raises ValueError."""
    with tempfile.TemporaryDirectory(prefix="burrowmq-ref-") as parent:
        path = Path(parent) / "checkout"
        _run(["git", "worktree", "add", "--detach", str(path), commit], ROOT)
        try:
            _run([sys.executable, "setup.py", "build_ext", "--inplace"], path)
            yield path
        finally:
            _run(["git", "worktree", "remove", "--force", str(path)], ROOT)


def _only(results: Results, peer: str) -> Results:
    kept = [replace(m, peer="burrowmq") for m in results.measures if m.peer == peer]
    return replace(results, measures=kept)


def measure(
    commit: str, only: list[str], rounds: int, longer: int = 1, turns: int = 1
) -> tuple[Results, Results]:
    """Results of `commit` and of this checkout, from one interleaved run of the load scenarios.

    `longer`: with so many times the messages of a quick run. `turns`: the two nodes of a round alternate so often. A
    process has a rate of its own for as long as it lives, some percent beside another of the same commit, and the
    machine has another each second: many rounds mend the one, many turns the other.
    """
    chosen = runner.select(only or _USUAL, is_full=False)
    with worktree(commit) as path:
        PEERS[PEER] = BurrowMQ(is_interpreted=False, name=PEER, root=path)
        try:
            peers = ("burrowmq", PEER)
            versions = runner.installed(list(peers))
            if set(versions) != set(peers):
                raise ValueError("both checkouts need the compiled codec")
            scenarios = tuple(replace(each, peers=peers) for each in chosen)
            plan = runner.Plan(
                is_full=False,
                rounds=rounds,
                scenarios=scenarios,
                peers=peers,
                touched_bytes=_TOUCHED_BYTES,
                is_fresh=True,
                longer=longer,
                turns=turns,
            )
            found = runner.run(plan, versions)
        finally:
            del PEERS[PEER]
    return _only(found, PEER), _only(found, "burrowmq")
