"""Runs a command that the kernel kills as soon as whoever started it is gone, however that ended.

A test run that dies by a signal would else leave its brokers behind. As a script: `die_with_parent.py PID COMMAND...`
asks for a signal at the parent's death and becomes the command; it imports next to nothing, because each node of the
tests is started through it. `dying` makes the command line.

State: none. Invariants: the process id stays the command's; the thread that starts it has to live as long as it does
(Linux sends the signal when that thread ends). Source: prctl(2), PR_SET_PDEATHSIG.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1


def dying(command: Sequence[str]) -> list[str]:
    """Give the command line that runs a command only as long as this process lives."""
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), str(os.getpid()), *command]


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends; end it now if that is gone already."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:
        sys.exit()


def become(parent: int, command: Sequence[str]) -> None:
    """Replace this process by the command, unless the parent is gone already."""
    die_with(parent)
    os.execvp(command[0], command)


if __name__ == "__main__":
    become(int(sys.argv[1]), sys.argv[2:])
