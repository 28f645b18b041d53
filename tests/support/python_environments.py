"""Environments of their own for tests that need what `.venv/spark` does not have; made once, from the package index.

State: folders below `.venv`, each complete or made again. Callers: tests of Spark Connect and of sinks.
"""

from __future__ import annotations

import subprocess
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

from tests.support.broker_process import ROOT


def python_with(name: str, packages: Sequence[str], behind: Path | None = None) -> Path | None:
    """Return the Python of an environment with these packages, and with those of `behind`, another environment.

    None where they cannot be had.
    """
    folder = ROOT / ".venv" / name
    python, done = folder / "bin" / "python", folder / "complete"
    wanted = "\n".join(packages)
    if not done.exists() or done.read_text() != wanted:
        venv.create(folder, with_pip=True, clear=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-input"]
        if subprocess.run([*pip, "install", *packages], check=False).returncode:
            return None
        if behind is not None:
            place = sysconfig.get_path("purelib", vars={"base": str(behind)})
            own = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
            (own / "behind.pth").write_text(place)
        done.write_text(wanted)
    return python
