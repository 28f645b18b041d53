"""What an image builder does with the Dockerfile, as far as a test without a container engine needs it.

Owns no state. Callers: the tests of the wheels (an image's build context is a checkout without what was built in it) and
of the Dockerfile. Refuses what it does not know instead of passing it over.
Source: the Dockerfile reference, .dockerignore included; exceptions (`!`) are not among what it knows.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Instruction:
    """One line of a Dockerfile, continuations joined."""

    name: str
    text: str


def stages(dockerfile: str) -> list[list[Instruction]]:
    """Return the instructions of each stage, its FROM first."""
    lines = [line for line in dockerfile.splitlines() if not line.lstrip().startswith("#")]
    found: list[list[Instruction]] = []
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        name, _, text = line.strip().partition(" ")
        if name == "FROM":
            found.append([])
        if name:
            found[-1].append(Instruction(name, text.strip()))
    return found


def ignored(path: str, patterns: list[str]) -> bool:
    """Say whether .dockerignore keeps this path (relative, with slashes) or a folder above it out of the context."""
    parts = path.split("/")
    above = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    return any(_matches(each, pattern) for each in above for pattern in patterns)


def _matches(path: str, pattern: str) -> bool:
    parts, wanted = path.split("/"), pattern.split("/")
    if wanted[0] == "**":
        wanted = wanted[1:]
        parts = parts[-len(wanted) :]
    # A star does not reach over a slash.
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatchcase, parts, wanted))


def copy_context(checkout: Path, target: Path, *, besides: tuple[str, ...] = ()) -> None:
    """Copy what a builder is given of a checkout, links as links; `besides` names patterns that it is spared, too."""
    patterns = [*(checkout / ".dockerignore").read_text().split(), *besides]
    if any(pattern.startswith("!") for pattern in patterns):
        raise ValueError("an exception in .dockerignore: ignored() has to learn it")

    def left_out(folder: str, names: list[str]) -> set[str]:
        below = os.path.relpath(folder, checkout)
        return {name for name in names if ignored(os.path.normpath(f"{below}/{name}"), patterns)}

    shutil.copytree(checkout, target, symlinks=True, ignore=left_out)
