"""A RabbitMQ node of ours ends with who started it, however that ended."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.broker_process import ROOT
from tests.support.rabbitmq_node import free_node_port, is_installed

pytestmark = [
    pytest.mark.differential,
    pytest.mark.needs_server,
    pytest.mark.long,
    pytest.mark.timeout(300),
]


def _processes_of(directory: Path) -> list[str]:
    """Return the command lines of what runs in this directory, or names it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
            place = (process / "cwd").resolve(strict=True)
        except OSError:
            continue
        if place.is_relative_to(directory) or re.search(rf"{re.escape(str(directory))}\b", words):
            found.append(words)
    return found


@pytest.mark.skipif(not is_installed(), reason="RabbitMQ is not on this machine")
def test_nothing_outlives_a_test_run_that_is_killed(tmp_path: Path) -> None:
    place = tmp_path / "node"
    place.mkdir()
    command = [
        sys.executable, "-m", "tests.support.rabbitmq_node", str(place), str(free_node_port())
    ]  # fmt: skip
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline().startswith("amqp://")
        assert any("beam.smp" in words for words in _processes_of(place))
        assert any("epmd" in words for words in _processes_of(place))
        run.kill()
    deadline = time.monotonic() + 30
    while (left := _processes_of(place)) and time.monotonic() < deadline:
        time.sleep(0.1)  # the kernel tells nobody but their parent that they ended
    assert left == []
