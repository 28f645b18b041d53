"""A directory without rights, in each of the three places where an embedded broker runs.

Root may write everywhere: where root runs the tests, the program that is refused has not got that right of root's.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

PR_CAPBSET_DROP = 24
CAP_DAC_OVERRIDE = 1
PROGRAM = """
import asyncio, sys
from burrowmq.embedded import Broker, BrokerError

def thread(directory):
    Broker(directory).start()

def process(directory):
    Broker(directory, mode="process").start()

def serve(directory):
    async def main():
        await Broker.serve(directory)
    asyncio.run(main())

for start in (thread, process, serve):
    for directory in sys.argv[1:]:
        try:
            start(directory)
            print(start.__name__, "started")
        except BrokerError as error:
            print(start.__name__, error)
"""


def as_nobody_special() -> None:
    """In the child, before it begins: root without the right to write where others may not."""
    if not os.geteuid() and ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0):
        os._exit(77)


@pytest.mark.slow
def test_a_directory_without_rights_is_said(tmp_path: Path) -> None:
    denied = tmp_path / "denied"
    denied.mkdir(mode=0o555)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(denied), str(denied / "data")],
        preexec_fn=as_nobody_special,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode == 77:
        pytest.skip("root may not give up a right here (prctl)")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["thread"] * 2 + ["process"] * 2 + ["serve"] * 2
    for line in lines:
        assert "Permission denied" in line
        assert "give it to the user" in line
        assert "--data-dir" not in line
    assert list(denied.iterdir()) == []
