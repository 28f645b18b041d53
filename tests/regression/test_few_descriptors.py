"""More queues than descriptors: files are closed, synced early and opened again; nothing fails and nothing is lost.

The limit is the operating system's own, in a process of its own (ulimit -n).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from burrowmq.storage.files.filesystem import OsFileSystem

SCRIPT = """
import json, os, queue, resource, sys, time
limit, data_dir = int(sys.argv[1]), sys.argv[2]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
from storage.engine import Engine
from storage.files.filesystem import OsFileSystem
from storage.types import StoreOptions
from tests.simulation.store_world import SilentObserver, make_message
from tests.support.stored_message import FakeMessage

QUEUES = 1100
budget = int(sys.argv[3])

def open_engine():
    engine = Engine(data_dir, OsFileSystem(), StoreOptions(open_files=budget), observer, FakeMessage)
    engine.recover()
    engine.on_failed = failures.append
    engine.on_space = spaces.append
    engine.on_committed = committed.append
    engine.start(inbox.put)
    return engine

def run_until(is_done):
    until = time.monotonic() + 60
    while not is_done():
        assert not failures, failures
        assert time.monotonic() < until
        try:
            inbox.get(timeout=0.5)()
        except queue.Empty:
            continue

observer = SilentObserver()
inbox, failures, spaces, committed = queue.SimpleQueue(), [], [], []
engine = open_engine()
logs = [engine.open_queue(f"/{at % 3}", f"q{at}", durable=True) for at in range(QUEUES)]
most = 0
for turn in range(2):
    for at, log in enumerate(logs):
        log.append(turn, [make_message(at, 5000 if at % 50 == 0 else 100, True)], None, 100)
    engine.require_sync()
    epoch = engine.epoch
    engine.hand_over()
    run_until(lambda: bool(committed) and committed[-1] >= epoch)
    most = max(most, len(os.listdir("/proc/self/fd")))
stats = engine.stats()
engine.close()
committed.clear()
engine = open_engine()
found = 0
for at in range(QUEUES):
    answers = []
    log = engine.open_queue(f"/{at % 3}", f"q{at}", durable=True)
    answer = log.read(0, 10, 1 << 20, lambda loaded, next_seq: answers.append(loaded))
    assert answer is None
    run_until(lambda: bool(answers))
    found += len(answers[0])
most = max(most, len(os.listdir("/proc/self/fd")))
engine.close()
print(json.dumps({"found": found, "spaces": spaces, "most": most, "stats": stats,
                  "lost": observer.events["record_lost"]}))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "budget"), [(120, 60), (60, 500)])
def test_more_queues_than_descriptors(tmp_path: Path, limit: int, budget: int) -> None:
    """With a budget below the limit nothing is ever refused; without one refusals cost waits, and nothing else."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(limit), str(tmp_path / "data"), str(budget)],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=Path(__file__).resolve().parents[2],
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["found"] == 2200
    assert found["lost"] == 0
    assert found["most"] <= limit
    if budget < limit:
        assert found["spaces"] == []
        assert found["stats"]["open_files"] <= budget
        assert found["stats"]["open_files_limit"] == budget
    assert found["stats"]["file_opens"] > 1000


KILLED = """
import os, resource, sys
from storage.engine import Engine
from storage.files.filesystem import OsFileSystem
from storage.types import StoreOptions
from tests.simulation.store_world import SilentObserver, make_message
from tests.support.stored_message import FakeMessage

QUEUES = 300
what, data_dir, version, limit, budget = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
engine = Engine(data_dir, OsFileSystem(), StoreOptions(open_files=budget), SilentObserver(), FakeMessage)
report = engine.recover()
engine.start_inline()
if what == "start":
    print(report.messages)
    engine.close()
    sys.exit()
for at in range(QUEUES):
    log = engine.open_queue("/", f"q{at}", durable=True, version=version)
    engine.definitions.put("queue", f"q{at}", {})
    log.append(0, [make_message(0, 50, True), make_message(1, 50, False)], None, 100)
    if at % 10 == 0:
        engine.require_sync()
        engine.hand_over()
engine.require_sync()
engine.hand_over()
os._exit(9)
"""


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 2])
def test_a_killed_node_with_more_queues_than_descriptors_starts(
    tmp_path: Path, version: int
) -> None:
    """Transient messages end at the start, so every queue's files change."""
    arguments = [str(tmp_path / "data"), str(version), "120", "60"]
    made, started = (
        subprocess.run(
            [sys.executable, "-c", KILLED, what, *arguments],
            capture_output=True,
            text=True,
            timeout=100,
            cwd=Path(__file__).resolve().parents[2],
            check=False,
        )
        for what in ("make", "start")
    )
    assert made.returncode == 9, made.stderr
    assert started.returncode == 0, started.stderr
    assert started.stdout.split() == ["300"]


def test_a_directory_is_synced_without_a_descriptor_to_spare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno
    import os

    filesystem = OsFileSystem()
    filesystem.keep_spare()
    real_open = os.open
    refusals = [1]

    def refuse_once(*arguments: object, **names: object) -> int:
        if refusals.pop() if refusals else 0:
            raise OSError(errno.EMFILE, "too many open files")
        return real_open(*arguments, **names)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse_once)
    for _ in range(2):
        filesystem.fsync_dir(str(tmp_path))
        refusals.append(1)
    monkeypatch.undo()
    with pytest.raises(FileNotFoundError):
        filesystem.fsync_dir(str(tmp_path / "none"))
