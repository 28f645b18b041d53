"""Fetches the three libraries of the management UI from the npm registry into management/ui/static/vendor.

Run as `python -m scripts.vendor` (`make vendor`) by who moves to another version: the files are committed, so that nobody
else needs a network or a build step. A package is refused when it has not the hash that stands here (npm's own form,
from `npm view NAME@VERSION dist.integrity`), and a file that was vendored when it has not its own; the second list is
printed for the new version. Changed are only names of imports: a browser knows no `preact`, but `./preact.js`.
"""

from __future__ import annotations

import base64
import hashlib
import io
import sys
import tarfile
import urllib.request
from pathlib import Path
from typing import NamedTuple

REGISTRY = "https://registry.npmjs.org"
TARGET = Path(__file__).resolve().parents[1] / "management" / "ui" / "static" / "vendor"


class Package(NamedTuple):
    """A version of a library, and which of its files are taken under which name."""

    name: str
    version: str
    integrity: str
    files: dict[str, str]


PACKAGES = (
    Package(
        "preact",
        "10.24.3",
        "sha512-Z2dPnBnMUfyQfSQ+GBdsGa16hz35YmLmtTLhM169uW944hYL6xzTYkJjC07j+Wosz733pMWx0fgON3JNw1jJQA==",
        {
            "dist/preact.module.js": "preact.js",
            "hooks/dist/hooks.module.js": "hooks.js",
            "LICENSE": "preact.LICENSE",
        },
    ),
    Package(
        "htm",
        "3.1.1",
        "sha512-983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ==",
        {"dist/htm.module.js": "htm.js", "LICENSE": "htm.LICENSE"},
    ),
    Package(
        "uplot",
        "1.6.31",
        "sha512-sQZqSwVCbJGnFB4IQjQYopzj5CoTZJ4Br1fG/xdONimqgHmsacvCjNesdGDypNKFbrhLGIeshYhy89FxPF+H+w==",
        {
            "dist/uPlot.iife.min.js": "uplot.js",
            "dist/uPlot.min.css": "uplot.css",
            "LICENSE": "uplot.LICENSE",
        },
    ),
)
# What stands in the folder, as `sha256sum` prints it.
HASHES = {
    "preact.js": "4165419bca07985d7456c80da570aaee773877ba3aa0c7a8d79ec117366c286d",
    "hooks.js": "6f21981908b6dcc9ff4ab9e182d4a25cbc5df5f5290b6d9815c7e6dd1db3660c",
    "preact.LICENSE": "1fe6958409c8c257a70c587a18b6f7f412b179b456630790d30b2ec9a8e4b7d4",
    "htm.js": "ab33dd3f38059b9be4d5f5350128eefb2356639c4e0bbe9d9e8b3ba75847e9e4",
    "htm.LICENSE": "740725f7252e750af735d0028cc534970772f513331e9f68150fede8fb3ce00f",
    "uplot.js": "6c09d090f49623e1873b3790f253da62d613a632ef4f31c0d3749c3e07d16440",
    "uplot.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    "uplot.LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
}


def changed(name: str, data: bytes) -> bytes:
    """The file as a browser can load it."""
    if name == "hooks.js":
        data = data.replace(b'from"preact"', b'from"./preact.js"')
    if name == "uplot.js":  # it is made for a page that has one name for everything
        data += b"export default uPlot;\n"
    kept = [line for line in data.split(b"\n") if not line.startswith(b"//# sourceMappingURL=")]
    return b"\n".join(kept)


def fetch(package: Package) -> dict[str, bytes]:
    """The package's files by the names they get here. Raises ValueError for a package of another hash."""
    url = f"{REGISTRY}/{package.name}/-/{package.name}-{package.version}.tgz"
    with urllib.request.urlopen(url, timeout=60) as answer:  # noqa: S310 - the registry's address
        archive = answer.read()
    found = "sha512-" + base64.b64encode(hashlib.sha512(archive).digest()).decode()
    if found != package.integrity:
        raise ValueError(f"{url} has the hash {found}")
    files = {}
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        for path, name in package.files.items():
            member = members.extractfile(f"package/{path}")
            assert member is not None, path
            files[name] = changed(name, member.read())
    return files


def main() -> int:
    """Write the files; 1 when one of them has not the hash that stands here."""
    TARGET.mkdir(parents=True, exist_ok=True)
    strange = []
    for package in PACKAGES:
        for name, data in fetch(package).items():
            (TARGET / name).write_bytes(data)
            digest = hashlib.sha256(data).hexdigest()
            print(f'    "{name}": "{digest}",')
            if HASHES.get(name) != digest:
                strange.append(name)
    if strange:
        print(
            f"HASHES in scripts/vendor.py says otherwise of {', '.join(strange)}", file=sys.stderr
        )
    return 1 if strange else 0


if __name__ == "__main__":
    sys.exit(main())
