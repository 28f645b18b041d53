"""Resolve what is wanted into lock files with hashes: run-time and build, development, the layer check and Spark.

Needs pip-tools in the environment and says so. Called by `make lock` only.

Invariant: a lock file names no index and no local directory, so that it works on any machine.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys

LOCKS = {
    "requirements.lock": ("pyproject.toml", "--extra=build"),
    "requirements-dev.lock": ("pyproject.toml", "--extra=build", "--extra=dev"),
    "requirements-layers.lock": ("requirements-layers.in",),
    "requirements-spark.lock": ("requirements-spark.in",),
    "requirements-spark-oldest.lock": ("requirements-spark-oldest.in",),
}
COMMAND = (
    *(sys.executable, "-m", "piptools", "compile", "--quiet", "--no-config", "--strip-extras"),
    *("--allow-unsafe", "--generate-hashes", "--no-emit-find-links", "--no-emit-index-url"),
    *("--no-emit-trusted-host", "--upgrade"),
)


def main() -> None:
    """Rewrite the lock files."""
    if importlib.util.find_spec("piptools") is None:
        sys.exit("make lock needs pip-tools: .venv/bin/pip install pip-tools")
    for name, sources in LOCKS.items():
        subprocess.run([*COMMAND, *sources, f"--output-file={name}"], check=True)


if __name__ == "__main__":
    main()
