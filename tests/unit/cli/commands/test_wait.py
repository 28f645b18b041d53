"""wait: a node whose process is known."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.served import Served, ctl


def ended_pid() -> int:
    """The number of a process that is no more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def told(at: str, pid: int) -> str:
    """What is said until a node runs."""
    return (
        f"Waiting for erlang distribution on node '{at}' while OS process '{pid}' is running\n"
        f"Waiting for applications 'rabbit_and_plugins' to start on node '{at}'\n"
        f"Applications 'rabbit_and_plugins' are running on node '{at}'\n"
    )


def test_a_node_that_runs(served: Served, tmp_path: Path) -> None:
    pid, file = os.getpid(), tmp_path / "pid"
    output = served.ctl("-n", "a@b", "wait", "--pid", str(pid))
    assert output == (0, told("a@b", pid), "")
    file.write_text(f"{pid}\n")
    output = served.ctl("-n", "a@b", "wait", str(file))
    first = f"Waiting for pid file '{file}' to appear\npid is {pid}\n"
    assert output == (0, first + told("a@b", pid), "")
    assert served.ctl("-q", "wait", str(file)) == (0, "", "")


def test_a_process_that_has_ended_is_not_waited_for(served: Served, tmp_path: Path) -> None:
    output = ctl("--data-dir", str(tmp_path), "-q", "wait", "--pid", str(ended_pid()))
    assert output == (69, "", "Error:\nprocess_not_running\n")
    assert served.ctl("wait", "--pid", "9" * 30).err == "Error:\nprocess_not_running\n"


def test_a_node_that_does_not_come(tmp_path: Path) -> None:
    words = ("--data-dir", str(tmp_path), "-n", "a@b", "-q", "wait")
    late = "Error: operation wait on node a@b timed out. Timeout value used: 100\n"
    assert ctl(*words, "--pid", str(os.getpid()), "-t", "0.1") == (75, "", late)
    assert ctl(*words, str(tmp_path / "none"), "-t", "0.1") == (75, "", late)


@pytest.mark.parametrize(
    ("content", "reason"),
    [("abc", '{:garbage_in_pid_file, "%s"}'), (None, "{:could_not_read_pid, {:error, :eisdir}}")],
)
def test_a_file_without_a_number(tmp_path: Path, content: str | None, reason: str) -> None:
    file = tmp_path / "pid"
    if content is None:
        file.mkdir()
    else:
        file.write_text(content)
    output = ctl("--data-dir", str(tmp_path), "-q", "wait", str(file))
    assert output == (69, "", f"Error:\n{reason.replace('%s', str(file))}\n")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ((), '"No pid or pidfile specified"'),
        (("/file", "--pid", "1"), '"Cannot specify both pid and pidfile"'),
        (("--pid", "abc"), "Invalid options for this command:\n--pid : abc"),
    ],
)
def test_what_it_takes(tmp_path: Path, words: tuple[str, ...], reason: str) -> None:
    output = ctl("--data-dir", str(tmp_path), "wait", *words)
    assert output == (64, "", f"Error (argument validation): {reason}\n")


def test_a_stopped_application_has_not_started(served: Served) -> None:
    served.bench.host.state = "stopped"
    output = served.ctl("-q", "wait", "--pid", str(os.getpid()))
    assert output == (69, "", "Error:\nrabbit_is_not_running\n")
