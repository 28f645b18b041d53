"""`make clean` removes what was built, and nothing of the checkout."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.support.broker_process import ROOT


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a checkout of git")
@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_nothing_that_git_keeps() -> None:
    said = run("make", "-n", "clean").splitlines()
    removed = [word for line in said for word in line.split()[2:] if line.startswith("rm -")]
    assert removed
    assert not run("git", "ls-files", "--", *removed)


def run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout
