"""Put the table of a benchmark's result file between the marks in README.md.

Called by `make bench-table` after a run; FILE names another result file than the latest one.

Invariant: the README holds no figure that a command did not print.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
READINGS = "\n| scenario | broker | readings |"
REST = "\nMemory, disk and latency of each run: `.venv/bin/python -m bench table FILE` on that run's results."
LATEST = "bench-results/latest.json"


def main() -> None:
    """Rewrite the table from the result file named on the command line."""
    file = sys.argv[1] if len(sys.argv) > 1 else LATEST
    command = [sys.executable, "-m", "bench", "table", file]
    table = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    table = table.partition(READINGS)[0].rstrip() + "\n" + REST
    readme = Path("README.md")
    before, begin, rest = readme.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"README.md has no {BEGIN} ... {END}")
    readme.write_text(f"{before}{BEGIN}\n{table}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
