"""A key that the schema declares has a reader in the server: no setting is accepted and then forgotten."""

from __future__ import annotations

import re
from pathlib import Path

from burrowmq.config.compose import COMPOSED
from burrowmq.config.known import NOT_HERE
from burrowmq.config.schema import plain_options

ROOT = Path(__file__).resolve().parents[2]


def words() -> set[str]:
    """Return every attribute name that the server reads."""
    found: set[str] = set()
    for package in ("broker", "management"):
        for path in (ROOT / package).rglob("*.py"):
            found.update(re.findall(r"\.(\w+)", path.read_text(encoding="utf-8")))
    return found


def test_every_field_is_read_somewhere() -> None:
    read = words()
    forgotten = [
        o.name for _, field, o in plain_options() if field not in read and o.name not in NOT_HERE
    ]
    assert not forgotten, (
        f"nothing reads {forgotten}: act on it, or add it to NOT_HERE in config/known.py"
    )


def test_what_has_no_effect_yet_is_declared() -> None:
    declared = {option.name for option in COMPOSED} | {
        option.name for _, _, option in plain_options()
    }
    assert set(NOT_HERE) <= declared
