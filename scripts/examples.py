"""Run the suites of the example projects, each in an environment of its own with the versions that it pins.

The broker comes from the checkout, with the versions of requirements.lock; everything else of a project comes from the
package index, once. What is made lies in .venv/examples. Exit status 1 when a suite fails. Called by `make
test-examples` and `make test-long`, or by hand with names of projects.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
ENVIRONMENTS = ROOT / ".venv" / "examples"
PLUGIN = "burrowmq.embedded.plugin"
"""What an installed package's entry point names."""


def projects() -> list[str]:
    """The example projects."""
    return sorted(path.parent.name for path in EXAMPLES.glob("*/requirements.txt"))


def python_of(project: str) -> str:
    """The interpreter of a project's environment, which is made anew when its requirements have changed."""
    folder = ENVIRONMENTS / project
    python = folder / "bin" / "python"
    wanted = [ROOT / "requirements.lock", EXAMPLES / project / "requirements.txt"]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in wanted)).hexdigest()
    stamp = folder / "stamp"
    if stamp.is_file() and stamp.read_text(encoding="ascii") == digest:
        return str(python)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-input"]
    subprocess.run([*pip, "install", "--require-hashes", "-r", str(wanted[0])], check=True)
    subprocess.run([*pip, "install", "-r", str(wanted[1])], check=True)
    site = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    Path(site, "checkout.pth").write_text(f"{ROOT}\n", encoding="utf-8")
    stamp.write_text(digest, encoding="ascii")
    return str(python)


def run(project: str) -> tuple[int, float]:
    """The exit status of a project's suite, and how long it took."""
    python = python_of(project)
    began = time.monotonic()
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-p", PLUGIN, "-p", "no:cacheprovider"],
        cwd=EXAMPLES / project,
        check=False,
        timeout=300,
    )
    return done.returncode, time.monotonic() - began


def main(names: list[str]) -> int:
    """Run the suites of these projects, or of all."""
    unknown = set(names) - set(projects())
    if unknown:
        print(f"there is no example {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    results = {project: run(project) for project in names or projects()}
    for project, (status, seconds) in results.items():
        print(f"{project:16} {'passed' if status == 0 else 'FAILED'} in {seconds:.1f} s")
    return int(any(status for status, _ in results.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
