"""A key that the schema declares has a reader in the server: no setting is accepted and then forgotten."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from config.schema import PARTS, NodeConfig

ROOT = Path(__file__).resolve().parents[2]


def fields() -> set[str]:
    config = NodeConfig(node_name="a@b", data_dir="d")
    parts = [config, *(getattr(config, part) for part in PARTS)]
    return {field.name for part in parts for field in dataclasses.fields(part)} - set(PARTS)


def test_every_field_is_read_somewhere() -> None:
    sources = [
        path for package in ("broker", "management") for path in (ROOT / package).rglob("*.py")
    ]
    words = {word for path in sources for word in re.findall(r"\.(\w+)", path.read_text())}
    forgotten = sorted(fields() - words)
    assert not forgotten, (
        f"nothing reads {forgotten}: act on it, or move its key from config/schema.py to config/known.py"
    )
