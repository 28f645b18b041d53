"""docs/security.md: each case of its table names tests that exist, or says what is not here."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| (S\d\d) \| (.+) \| (.+) \|$", re.MULTILINE)
TEST = re.compile(r"\[`(test_\w+)`\]\(\.\./(tests/[\w/]+\.py)\)")


def faults(page: str) -> list[str]:
    """What is wrong with the table of a page."""
    rows = ROW.findall(page)
    found = []
    if [case for case, _, _ in rows] != [f"S{number:02}" for number in range(1, 40)]:
        found.append(f"cases are {[case for case, _, _ in rows]}")
    for case, _, shown in rows:
        tests = TEST.findall(shown)
        if not tests and not shown.startswith("not here: "):
            found.append(f"{case} has neither a test nor a reason")
        for test, path in tests:
            file = ROOT / path
            if not file.is_file() or f"def {test}(" not in file.read_text(encoding="utf-8"):
                found.append(f"{case}: no {test} in {path}")
    return found


def test_each_case_has_its_test_or_its_reason() -> None:
    assert faults((ROOT / "docs/security.md").read_text(encoding="utf-8")) == []


def test_what_is_missing_is_found() -> None:
    page = (ROOT / "docs/security.md").read_text(encoding="utf-8")
    assert faults(page.replace("not here: there are no WebSockets", "yes"))
    assert faults(page.replace("`test_bulk_delete`", "`test_bulk_deletion`"))
    assert faults(page.replace("| S39 |", "| S40 |"))
