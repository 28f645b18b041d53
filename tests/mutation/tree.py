"""A copy of the checkout that has one mutant at a time.

The copy is interpreted (`BURROWMQ_PURE=1`), so that an edited file needs no compiler. State owned: the copy, in a
directory of its own that goes with it, and the file that is edited just now.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.mutation.mutant import ROOT, Mutant


class Tree:
    """See the module."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="mutant-")
        self.root = Path(self._directory.name)
        self._edited: Mutant | None = None
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True).stdout
        for name in sorted(set(names.decode().split("\0"))):
            source = ROOT / name
            if not name or not (source.is_symlink() or source.exists()):
                continue
            target = self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)

    def close(self) -> None:
        """Remove it."""
        self._directory.cleanup()

    def take(self, mutant: Mutant | None) -> None:
        """Have this mutant in it, and no other. Raises NotApplicable."""
        if self._edited is not None:
            self._write(self._edited.path, (ROOT / self._edited.path).read_text(encoding="utf-8"))
            self._edited = None
        if mutant is not None:
            self._write(mutant.path, mutant.applied())
            self._edited = mutant

    def _write(self, name: str, text: str) -> None:
        path = self.root / name
        path.write_text(text, encoding="utf-8")
        # The same size within the same second would be taken for the same file.
        for place in (path, self.root / "burrowmq" / name):
            Path(importlib.util.cache_from_source(str(place))).unlink(missing_ok=True)

    def environment(self) -> dict[str, str]:
        """What a program in the copy runs with."""
        return {
            **{name: value for name, value in os.environ.items() if name != "BURROWMQ_VERIFY"},
            "BURROWMQ_PURE": "1",
            "PYTHONPATH": str(self.root),
            "PYTHONDONTWRITEBYTECODE": "",
        }
