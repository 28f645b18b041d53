"""Files that are generated from the configuration schema are up to date, and the Makefile lists what exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from burrowmq.config import example
from scripts import bench_table

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


FORMATS = {
    "record": "storage/record/__init__.py",
    "segment": "storage/shared/segment.py",
    "queue_store": "storage/queue/v2/store.py",
    "index_v1": "storage/queue/v1/blocks.py",
    "queue_name": "storage/names.py",
    "index_v2": "storage/queue/v2/index.py",
    "terms": "storage/shared/references.py",
    "definitions": "storage/directory/definition_log.py",
    "cluster_record": "cluster/record.py",
    "import_journal": "broker/imports/journal.py",
}


@pytest.mark.parametrize("page", FORMATS)
def test_the_format_pages_have_the_tables_of_the_modules(page: str) -> None:
    docstring = ast.get_docstring(ast.parse((ROOT / FORMATS[page]).read_text(encoding="utf-8")))
    written = [
        line.split() for line in (ROOT / "docs" / "formats" / f"{page}.md").read_text().splitlines()
    ]
    tables = [line for line in (docstring or "").splitlines() if line.startswith("    ")]
    missing = [line for line in tables if line.split() not in written]
    assert tables
    assert not missing, f"docs/formats/{page}.md lacks these lines of the table: {missing}"


def test_the_readme_shows_what_the_page_of_figures_says() -> None:
    page = (ROOT / bench_table.PAGE).read_text(encoding="utf-8")
    readme = (ROOT / bench_table.README).read_text(encoding="utf-8")
    picture = (ROOT / bench_table.PICTURE).read_text(encoding="utf-8")
    assert bench_table.rows(page) in readme, "run `python -m scripts.bench_table --from-page`"
    assert bench_table.picture(page) == picture, "run `python -m scripts.bench_table --from-page`"


def test_the_readme_is_read_in_one_go() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 100
