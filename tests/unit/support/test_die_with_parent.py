"""What the tests start ends with them."""

from __future__ import annotations

import os
import select
import subprocess
import sys

from tests.support.broker_process import ROOT
from tests.support.die_with_parent import dying

PARENT = """
import subprocess, sys
from tests.support.die_with_parent import dying
subprocess.Popen(dying(["sleep", "60"]), pass_fds=[int(sys.argv[1])])
print("started", flush=True)
input()
"""


def test_a_command_ends_when_its_parent_is_killed() -> None:
    ours, theirs = os.pipe()
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(theirs)],
        cwd=ROOT,
        pass_fds=[theirs],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    os.close(theirs)
    with parent, os.fdopen(ours, "rb") as held:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"started\n"
        parent.kill()
        # The pipe ends when the last process that holds its other end is gone.
        readable, _, _ = select.select([held], [], [], 30)
        assert readable
        assert held.read() == b""


def test_it_is_the_command_with_its_status_and_its_id() -> None:
    command = [sys.executable, "-c", "import os, sys; print(os.getpid()); sys.exit(7)"]
    with subprocess.Popen(dying(command), stdout=subprocess.PIPE, text=True) as process:
        printed, _ = process.communicate(timeout=30)
    assert int(printed) == process.pid
    assert process.returncode == 7


def test_a_parent_that_is_gone_already_is_noticed() -> None:
    command = dying(["echo", "runs"])
    command[4] = "1"  # not ours
    done = subprocess.run(command, capture_output=True, check=True, timeout=30)
    assert done.stdout == b""
