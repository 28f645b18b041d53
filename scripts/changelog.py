"""Assemble the fragments of changes/ into a section of CHANGELOG.md and remove them.

A fragment is `<words>.<added|changed|fixed|removed>.md`, a sentence or two; parallel work never touches the same
file. Called by `make changelog VERSION=x.y.z` at a release.
"""

from __future__ import annotations

import datetime as dt
import re
import sys
from pathlib import Path

KINDS = ("added", "changed", "fixed", "removed")
MARK = "<!-- releases -->"
VERSION = re.compile(r"\d+\.\d+\.\d+")


def section(version: str, fragments: list[Path]) -> str:
    """Return the changelog section that the fragments make."""
    today = dt.datetime.now(tz=dt.UTC).date().isoformat()
    lines = [f"## {version} - {today}", ""]
    for kind in KINDS:
        texts = [
            path.read_text().strip().replace("\n", "\n  ")
            for path in fragments
            if path.stem.rpartition(".")[2] == kind
        ]
        if texts:
            lines += [f"### {kind.capitalize()}", "", *(f"- {text}" for text in texts), ""]
    return "\n".join(lines)


def main() -> None:
    """Write the section of the version named on the command line."""
    if len(sys.argv) != 2 or not VERSION.fullmatch(sys.argv[1]):
        sys.exit("usage: make changelog VERSION=x.y.z")
    fragments = sorted(path for path in Path("changes").glob("*.md") if path.name != "README.md")
    changelog = Path("CHANGELOG.md")
    text = changelog.read_text()
    if MARK not in text:
        sys.exit(f"CHANGELOG.md has no line {MARK}")
    changelog.write_text(text.replace(MARK, f"{MARK}\n\n{section(sys.argv[1], fragments)}", 1))
    for path in fragments:
        path.unlink()


if __name__ == "__main__":
    main()
