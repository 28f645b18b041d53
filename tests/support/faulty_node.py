"""A node whose disk refuses what a file says: run as a program, with the arguments of burrowmq.broker.

The file, named by FAULTS, has a JSON list of rules: `operation` (a method of the file system or of a file), `part` of
the path, `error` (a name of errno), and `share`: that share of the calls fails (1: all). It is read again when it
changes, so that a test can break the disk of a running node and mend it. State: the rules.
"""

from __future__ import annotations

import errno
import json
import os
import random
import sys
import time
from collections.abc import Sequence
from typing import Any

from burrowmq.broker.__main__ import main
from burrowmq.storage.files import filesystem
from burrowmq.storage.files.filesystem import Naming, OsFile, OsFileSystem, Write

LOOK_EVERY_S = 0.02
RANDOM = random.Random(1)


class Rules:
    """What fails now."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._rules: list[dict[str, Any]] = []
        self._next_look = 0.0
        self._seen = 0

    def check(self, operation: str, path: str) -> None:
        """Fail, if a rule says so."""
        self._look()
        for rule in self._rules:
            is_meant = rule["operation"] == operation and rule["part"] in path
            if is_meant and RANDOM.random() < rule.get("share", 1):
                number = getattr(errno, rule["error"])
                with Naming(operation, path):
                    raise OSError(number, os.strerror(number), path)

    def _look(self) -> None:
        now = time.monotonic()
        if now < self._next_look:
            return
        self._next_look = now + LOOK_EVERY_S
        changed = os.stat(self._path).st_mtime_ns
        if changed != self._seen:
            self._seen = changed
            with open(self._path, encoding="utf-8") as file:
                self._rules = json.load(file)


RULES = Rules(os.environ["FAULTS"])


def refuse(owner: type, operation: str) -> None:
    """Put the rules in front of one call."""
    whole = getattr(owner, operation)

    def checked(self: Any, *arguments: Any) -> Any:
        RULES.check(operation, self.path if owner is OsFile else arguments[-1])
        return whole(self, *arguments)

    setattr(owner, operation, checked)


def one_by_one(
    self: OsFileSystem, files: Sequence[OsFile], directories: Sequence[str]
) -> list[tuple[Any, OSError]]:
    """Sync through the calls that may fail."""
    return filesystem.sync_in_order(self, files, directories)


def write_one_by_one(self: OsFileSystem, writes: Sequence[Write]) -> int:
    """Write through the calls that may fail."""
    return filesystem.write_in_order(writes)


def in_two_calls(self: OsFile, data: bytes, offset: int) -> None:
    """Write through by the calls that may fail."""
    self.pwrite(data, offset)
    self.fdatasync()


if __name__ == "__main__":
    for name in ("pread", "pwrite", "fdatasync", "truncate"):
        refuse(OsFile, name)
    OsFile.write_through = in_two_calls  # type: ignore[method-assign]
    for name in ("open", "create", "fsync_dir", "rename", "unlink", "mkdir", "rmtree"):
        refuse(OsFileSystem, name)
    OsFileSystem.sync_all = one_by_one  # type: ignore[method-assign,assignment]
    OsFileSystem.write_some = write_one_by_one  # type: ignore[method-assign]
    sys.exit(main())
