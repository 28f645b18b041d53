"""The files with the limits of this process's control groups, versions 2 and 1.

Only reads, and owns no state. A file that is missing is read as empty.
"""

from __future__ import annotations

import os
from collections.abc import Iterator


def files(root: str, controller: str, name_v2: str, name_v1: str) -> Iterator[str]:
    """Paths where a limit may be found (they need not exist): the mount's own, this process's group, each one above."""
    mounts = os.path.join(root, "sys/fs/cgroup")
    yield os.path.join(mounts, name_v2)
    yield os.path.join(mounts, controller, name_v1)
    for line in _lines(os.path.join(root, "proc/self/cgroup")):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number != "0" and controller not in controllers.split(","):
            continue
        name = name_v2 if number == "0" else name_v1
        base = mounts if number == "0" else os.path.join(mounts, controller)
        parts = [part for part in path.split("/") if part and part != ".."]
        for count in range(1, len(parts) + 1):
            yield os.path.join(base, *parts[:count], name)


def first_line(path: str) -> str:
    """A file's first line, stripped; empty when it cannot be read."""
    return next(iter(_lines(path)), "").strip()


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []
