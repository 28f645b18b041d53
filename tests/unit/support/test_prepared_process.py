"""A node that is forked is a process like any other, and ends with who asked for it."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.broker_process import PYTHON, ROOT, BrokerProcess
from tests.support.prepared_process import Forked, Prepared, prepared

OWNER = """
import sys
from pathlib import Path
from tests.support.broker_process import BrokerProcess
node = BrokerProcess(Path(sys.argv[1]))
node.start()
print(node.running().pid, flush=True)
input()
"""

SERVES = """
import socket
import sys
from tests.support import prepared_process
prepared_process.MODULES = ("ends_with_files_open",)
prepared_process.serve(socket.socket(fileno=int(sys.argv[1])))
"""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[BrokerProcess]:
    found = BrokerProcess(tmp_path / "data")
    found.start()
    assert isinstance(found.process, Forked)
    yield found
    found.kill()


@pytest.mark.slow
def test_it_has_an_id_a_session_and_a_status(node: BrokerProcess) -> None:
    process = node.running()
    assert os.getsid(process.pid) == process.pid
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    assert node.stop() == 0
    assert process.poll() == process.wait() == process.returncode == 0
    process.send_signal(signal.SIGKILL)  # to nobody
    assert process.returncode == 0


@pytest.mark.slow
def test_it_can_be_killed_and_started_again(node: BrokerProcess) -> None:
    for _ in range(2):
        killed = node.running()
        node.kill()
        assert killed.returncode == -signal.SIGKILL
        node.start()
    assert node.stop() == 0


@pytest.mark.slow
def test_a_start_that_fails_says_so(node: BrokerProcess) -> None:
    other = BrokerProcess(node.data_dir)
    with pytest.raises(RuntimeError, match="cannot start"):
        other.start()
    assert other.running().returncode == 1


@pytest.mark.slow
def test_it_inherits_nothing_of_another(node: BrokerProcess, tmp_path: Path) -> None:
    other = BrokerProcess(tmp_path / "other")
    other.start()
    held = {pid: _held(pid) for pid in (node.running().pid, other.running().pid)}
    assert other.stop() == 0
    of_the_first, of_the_second = held.values()
    assert of_the_first & of_the_second == {os.path.realpath(os.devnull)}


def _held(pid: int) -> set[str]:
    """What its descriptors lead to; what every process calls alike is left out."""
    place = Path(f"/proc/{pid}/fd")
    found = {os.readlink(place / number) for number in os.listdir(place)}
    return {each for each in found if not each.startswith("anon_inode:")}


ENDS_WITH_FILES_OPEN = """
import atexit
import os
def main():
    for _ in range(8):
        atexit.register(os.close, os.open(os.devnull, os.O_RDONLY))
    return 0
"""


@pytest.mark.slow
def test_what_it_has_open_at_its_end_is_closed_by_nobody_else(tmp_path: Path) -> None:
    (tmp_path / "ends_with_files_open.py").write_text(ENDS_WITH_FILES_OPEN, encoding="utf-8")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with subprocess.Popen(
        [sys.executable, "-c", SERVES, str(theirs.fileno())],
        cwd=ROOT,
        env=dict(os.environ, PYTHONPATH=str(tmp_path)),
        pass_fds=[theirs.fileno()],
    ):
        theirs.close()
        reading, status = os.pipe()
        with (tmp_path / "log").open("w+b") as log, open(reading, "rb") as told, ours:
            asked = json.dumps([[], str(tmp_path), dict(os.environ)]).encode()
            socket.send_fds(ours, [asked], [log.fileno(), status])
            os.close(status)
            for descriptor in socket.recv_fds(ours, 64, 1)[1]:
                os.close(descriptor)
            assert told.read() == b"0"
            log.seek(0)
            assert log.read() == b""


@pytest.mark.slow
def test_it_ends_with_its_owner(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path / "data")]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        pid_fd = os.pidfd_open(int(owner.stdout.readline()))
        owner.kill()
    assert select.select([pid_fd], [], [], 30)[0]
    os.close(pid_fd)


@pytest.mark.slow
def test_what_a_test_changes_in_the_environment_needs_the_real_program(
    node: BrokerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert prepared(PYTHON) is not None
    monkeypatch.setenv("BURROWMQ_TEST_OF_ITS_OWN", "1")
    assert prepared(PYTHON) is None
    assert node.stop() == 0
    node.start()
    assert isinstance(node.process, subprocess.Popen)


def test_a_thread_that_may_end_earlier_is_given_none() -> None:
    found: list[Prepared | None] = []
    thread = threading.Thread(target=lambda: found.append(prepared(PYTHON)))
    thread.start()
    thread.join()
    assert found == [None]


@pytest.mark.parametrize(
    "options",
    [
        {"program": (PYTHON, "-m", "burrowmq.broker", "--node", "x")},
        {"environment": {"A": "b"}},
        {"folder": Path("/")},
        {"is_verified": False},
        {"is_from_nothing": True},
    ],
)
def test_what_is_not_forked(tmp_path: Path, options: dict[str, object]) -> None:
    assert BrokerProcess(tmp_path).may_be_forked
    # one option of each kind: no type fits them all
    assert not BrokerProcess(tmp_path, **options).may_be_forked  # type: ignore[arg-type]
