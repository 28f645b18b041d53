"""Resolve pyproject.toml into requirements.lock (run-time and build) and requirements-dev.lock (all), with hashes.

Needs pip-tools in the environment and says so. Called by `make lock` only.

Invariant: a lock file names no index and no local directory, so that it works on any machine.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys

LOCKS = {"requirements.lock": ("build",), "requirements-dev.lock": ("build", "dev")}
COMMAND = (
    *(sys.executable, "-m", "piptools", "compile", "--quiet", "--no-config", "--strip-extras"),
    *("--allow-unsafe", "--generate-hashes", "--no-emit-find-links", "--no-emit-index-url"),
    *("--no-emit-trusted-host", "--upgrade", "pyproject.toml"),
)


def main() -> None:
    """Rewrite both lock files."""
    if importlib.util.find_spec("piptools") is None:
        sys.exit("make lock needs pip-tools: .venv/bin/pip install pip-tools")
    for name, extras in LOCKS.items():
        chosen = [f"--extra={extra}" for extra in extras]
        subprocess.run([*COMMAND, *chosen, f"--output-file={name}"], check=True)


if __name__ == "__main__":
    main()
