"""Tests that who interrupts a program while it is being loaded ends it quietly. Covers: burrowmq/programs.py."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

INTERRUPTED_AT = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, {handler})
sys.meta_path.insert(0, Interrupt())
sys.argv = ["program", "--version"]
from burrowmq import programs
sys.exit(programs.{program}())
"""


def run(program: str, module: str, handler: str = "signal.default_int_handler") -> tuple[int, str]:
    """Run it with ^C as it comes to a module; its exit status, and what it says about that."""
    code = INTERRUPTED_AT.format(program=program, module=module, handler=handler)
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    return ended.returncode, ended.stderr


@pytest.mark.parametrize(
    ("program", "module", "status"),
    [
        ("server", "uvloop", -signal.SIGINT),
        ("server", "burrowmq.config.schema", -signal.SIGINT),
        ("ctl", "burrowmq.cli.registry", 130),
        ("store", "burrowmq.offline.__main__", 130),
    ],
)
def test_who_interrupts_it_as_it_is_loaded_gets_no_traceback(
    program: str, module: str, status: int
) -> None:
    assert run(program, module) == (status, "")


@pytest.mark.parametrize("program", ["server", "ctl"])
def test_a_shell_that_has_interrupts_ignored_keeps_them_so(program: str) -> None:
    assert run(program, "burrowmq.config.schema", "signal.SIG_IGN") == (0, "")
