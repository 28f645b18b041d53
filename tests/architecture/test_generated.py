"""Files that are generated from the configuration schema are up to date, and the Makefile lists what exists."""

from __future__ import annotations

import re
from pathlib import Path

from config import example

ROOT = Path(__file__).resolve().parents[2]


def test_the_example_file_follows_the_schema() -> None:
    written = (ROOT / example.EXAMPLE_PATH).read_text(encoding="utf-8")
    assert written == example.example_file(), "run `make docs`"


def test_the_configuration_page_follows_the_schema() -> None:
    written = (ROOT / example.PAGE_PATH).read_text(encoding="utf-8")
    assert written == example.page(), "run `make docs`"


def test_every_target_is_listed_by_help() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = set(re.findall(r"^\.PHONY: (\S+)", makefile, re.MULTILINE))
    described = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    assert phony == described, "give each target a `## what it does`"


def test_the_documents_name_targets_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^\.PHONY: (\S+)", makefile, re.MULTILINE))
    pages = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "ARCHITECTURE.md",
        *(ROOT / "docs").rglob("*.md"),
    ]
    named = {
        target
        for page in pages
        for target in re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))
    }
    assert named <= targets, f"no such targets: {sorted(named - targets)}"
