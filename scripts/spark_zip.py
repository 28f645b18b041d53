"""Pack the Spark packages into one file for `spark-submit --py-files`: build/pyspark_amqp.zip.

Called by `make spark-zip`. Needs nothing but Python; the same sources give the same octets.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = "pyspark_amqp*"
EPOCH = (1980, 1, 1, 0, 0, 0)


def pack(target: Path, root: Path = ROOT) -> list[str]:
    """Write the zip and return the names in it."""
    found = [
        path
        for package in sorted(root.glob(PACKAGES))
        if package.is_dir()
        for path in sorted(package.rglob("*.py"))
    ]
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in found:
            entry = zipfile.ZipInfo(path.relative_to(root).as_posix(), EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, path.read_bytes())
    return [path.relative_to(root).as_posix() for path in found]


def main() -> int:
    """Pack and say where."""
    target = ROOT / "build" / "pyspark_amqp.zip"
    names = pack(target)
    print(f"{target.relative_to(ROOT)}: {len(names)} modules, {target.stat().st_size:,} octets")
    return 0


if __name__ == "__main__":
    sys.exit(main())
