"""Where the report goes, and who takes it: a reader that leaves, a full disk, a closed stream, any locale.

Covers: offline/__main__.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import offline_store


def run(path: Path, shell: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a line of a shell with the command as $CHECK."""
    command = f"{sys.executable} -m burrowmq.offline --data-dir {path} check"
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", shell.replace("CHECK", command)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.fixture
def store(tmp_path: Path) -> Path:
    offline_store.make_store(tmp_path, scale=10)
    return tmp_path


def test_a_reader_that_leaves_gets_no_words_about_it(store: Path) -> None:
    ended = run(store, "CHECK | true")
    assert ended.stderr == ""
    assert ended.returncode in (0, 74)  # 0: all was written before the reader left


def test_a_report_that_finds_no_room_is_no_success(store: Path) -> None:
    ended = run(store, "CHECK >/dev/full")
    assert ended.returncode == 74
    assert ended.stderr == "burrowmq-store: the report cannot be written: No space left on device\n"


def test_without_an_output_the_status_tells(store: Path) -> None:
    assert run(store, "CHECK >&-").returncode == 0
    next(store.rglob("0.g0.seg")).write_bytes(b"")
    assert run(store, "CHECK >&- 2>&-").returncode == 1


def test_no_memory_is_no_damage(tmp_path: Path) -> None:
    engine = offline_store.open_engine(tmp_path)
    log = engine.open_queue("/", "q", durable=True)
    log.append(0, [offline_store.make_message(1, 8 << 20, True)], None, 8 << 20)
    offline_store.commit(engine)
    engine.close()
    words = ["--data-dir", str(tmp_path), "check"]
    with_little = f"""
import resource, sys, burrowmq.offline.check, burrowmq.offline.resegment, burrowmq.offline.restore
from burrowmq.offline.__main__ import main
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * resource.getpagesize() + (2 << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
sys.exit(main({words}))
"""
    ended = subprocess.run(
        [sys.executable, "-c", with_little], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr.splitlines()[-1]) == (
        71,
        "burrowmq-store: no memory is left: raise its limit (ulimit -v); it ends as killed",
    )
    assert "Traceback" not in ended.stderr


def test_any_name_can_be_told_in_any_locale(tmp_path: Path) -> None:
    engine = offline_store.open_engine(tmp_path)
    log = engine.open_queue("/", "gr\xfc\xdfe", durable=True)
    log.append(0, [offline_store.make_message(1, 40, True)], None, 40)
    offline_store.commit(engine)
    engine.close()
    ended = run(tmp_path, "CHECK", PYTHONIOENCODING="ascii")
    assert ended.returncode == 0, ended.stderr
    assert "gr\\xfc\\xdfe" in ended.stdout
