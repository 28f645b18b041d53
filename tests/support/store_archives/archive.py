"""An archived data directory and the manifest beside it: packing, unpacking, and what both are called.

State: none. Callers: the maker (`tests.support.store_archives.make`) and the test that opens released stores.
`tests/data/stores/<release>/<name>.tar.xz` holds the data directory as the node left it, `<name>.json` says what a
node has to find in it. Invariants: the files are packed in the order of their names, without times or owners; what is
no part of the store (the lock, sockets) is left out. docs/formats/README.md describes the manifest.
"""

from __future__ import annotations

import io
import json
import stat
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
STORES = ROOT / "tests" / "data" / "stores"
NOT_THE_STORE = {"LOCK"}
MANIFEST_FORMAT = 1
# How deep these parts of a manifest are spread over lines: down to one message, one definition a line.
LEVELS = {"definitions": 2, "queues": 3}


@dataclass(frozen=True)
class Archive:
    """One archive; `folder` is named after the release whose node wrote it."""

    folder: Path
    name: str

    @property
    def tar_path(self) -> Path:
        """Return where the data directory is."""
        return self.folder / f"{self.name}.tar.xz"

    @property
    def manifest_path(self) -> Path:
        """Return where its description is."""
        return self.folder / f"{self.name}.json"

    @property
    def title(self) -> str:
        """Return how test ids and messages call it."""
        return f"{self.folder.name}-{self.name}"

    def manifest(self) -> dict[str, Any]:
        """Return what is in the data directory."""
        manifest: dict[str, Any] = json.loads(self.manifest_path.read_text(encoding="utf-8"))
        if manifest["format"] != MANIFEST_FORMAT:
            raise ValueError(f"{self.manifest_path}: format {manifest['format']} is not known")
        return manifest

    def unpack(self, target: Path) -> None:
        """Bring the data directory back as `target`, which must not exist."""
        target.mkdir(mode=0o700)
        with tarfile.open(self.tar_path) as tar:
            tar.extractall(target, filter="data")

    def pack(self, data_dir: Path, manifest: dict[str, Any]) -> None:
        """Write both files from a data directory that no node uses."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(self.tar_path, "w:xz", preset=9) as tar:
            for path in sorted(data_dir.rglob("*")):
                _add(tar, path, path.relative_to(data_dir).as_posix())
        parts = [
            f'"{key}": {_text(value, LEVELS.get(key, 0), " ")}'
            for key, value in {"format": MANIFEST_FORMAT, **manifest}.items()
        ]
        self.manifest_path.write_text("{\n " + ",\n ".join(parts) + "\n}\n", encoding="ascii")


def archives() -> list[Archive]:
    """Return every archive of every release."""
    return [
        Archive(path.parent, path.name.removesuffix(".tar.xz"))
        for path in sorted(STORES.glob("*/*.tar.xz"))
    ]


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    mode = path.lstat().st_mode
    if name in NOT_THE_STORE or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        return
    entry = tarfile.TarInfo(name)
    entry.mode = stat.S_IMODE(mode)
    if stat.S_ISDIR(mode):
        entry.type = tarfile.DIRTYPE
        tar.addfile(entry)
        return
    content = path.read_bytes()
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def _text(value: Any, levels: int, indent: str = "") -> str:
    """Return JSON with this many levels of containers spread over lines: a row is a line of a diff."""
    if not levels or not isinstance(value, dict | list) or not value:
        return json.dumps(value)
    inner = indent + " "
    if isinstance(value, dict):
        rows = [f"{json.dumps(key)}: {_text(row, levels - 1, inner)}" for key, row in value.items()]
        first, last = "{}"
    else:
        rows = [_text(row, levels - 1, inner) for row in value]
        first, last = "[]"
    return f"{first}\n{inner}" + f",\n{inner}".join(rows) + f"\n{indent}{last}"
