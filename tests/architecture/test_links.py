"""Links of the pages lead somewhere: to files that exist, and to headings that the page they name has.

Links of other sites are not followed. A fragment in `changes/` becomes a part of CHANGELOG.md, so its links start at the
top. Beside links: the commands that pages name, of make and of burrowctl.
"""

from __future__ import annotations

import functools
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from burrowmq.cli.registry import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
FENCED = re.compile(r"^ *```.*?^ *```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)(?: \"[^\"]*\")?\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
# In backticks, or at the beginning of a line of a block of code.
MAKE = re.compile(r"(?:`|^ *)make ([a-z][a-z-]*)", re.MULTILINE)
BURROWCTL = re.compile(r"(?:`|^ *(?:\$ )?)(?:\.venv/bin/)?burrowctl ([a-z][a-z_-]*)", re.MULTILINE)


@functools.cache
def tracked() -> tuple[str, ...]:
    """Every file that git knows."""
    run = ["git", "ls-files", "-z"]
    listed = subprocess.run(run, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return tuple(path for path in listed.split("\0") if path)


def pages() -> list[Path]:
    """Every text in Markdown."""
    return [ROOT / path for path in tracked() if path.endswith(".md") and (ROOT / path).exists()]


@functools.cache
def prose(page: Path) -> str:
    """A page without its blocks of code, line by line where it was."""
    text = page.read_text(encoding="utf-8")
    return FENCED.sub(lambda block: "\n" * block[0].count("\n"), text)


@functools.cache
def anchors(page: Path) -> frozenset[str]:
    """What can stand behind `#`: a heading in small letters, hyphens for blanks, numbered when it comes again."""
    seen: Counter[str] = Counter()
    found = set()
    for heading in HEADING.findall(prose(page)):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        anchor = re.sub(r"[^\w\- ]", "", words.strip().lower()).replace(" ", "-")
        found.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return frozenset(found)


def is_astray(page: Path, link: str) -> bool:
    """Whether a link of this page leads nowhere."""
    if re.match(r"[a-z]+:", link):
        return False
    path, _, anchor = link.partition("#")
    start = ROOT if page.parent.name == "changes" else page.parent
    target = (start / path).resolve() if path else page
    if not target.exists() or not target.is_relative_to(ROOT):
        return True
    return bool(anchor) and target.suffix == ".md" and anchor not in anchors(target)


def links(page: Path) -> Iterator[tuple[int, str]]:
    """Yield the links of a page with their lines."""
    text = prose(page)
    for match in LINK.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, match[1]


def test_every_link_leads_somewhere() -> None:
    found = [(page, number, link) for page in pages() for number, link in links(page)]
    assert len(found) > 500, "the pages have more links than that: are they read?"
    astray = [
        f"{page.relative_to(ROOT)}:{number}: {link}"
        for page, number, link in found
        if is_astray(page, link)
    ]
    assert not astray, "\n".join(["links that lead nowhere:", *astray])


def named(command: re.Pattern[str]) -> dict[str, str]:
    """The words behind a command's name in the pages, each with a page that has it."""
    found = {}
    for page in pages():
        text = page.read_text(encoding="utf-8")
        spans = re.findall(r"`[^`\n]+`", prose(page))
        for part in (*spans, *FENCED.findall(text)):
            found.update(dict.fromkeys(command.findall(part), page.relative_to(ROOT).as_posix()))
    return found


def test_every_target_of_make_that_a_page_names_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    found = named(MAKE)
    assert len(found) > 20
    assert {word: page for word, page in found.items() if word not in targets} == {}


def test_every_command_of_burrowctl_that_a_page_names_is_there() -> None:
    found = {word.replace("-", "_"): page for word, page in named(BURROWCTL).items()}
    assert len(found) > 30
    assert {word: page for word, page in found.items() if word not in COMMANDS} == {}


def test_a_command_is_read_from_backticks_and_from_blocks() -> None:
    assert MAKE.findall("`make no-such`") == MAKE.findall("```sh\nmake no-such\n```") == ["no-such"]
    assert BURROWCTL.findall("$ burrowctl no-such") == ["no-such"]
    assert MAKE.findall("to make sense of it") == []


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("https://example.org/#nowhere", False),
        ("README.md", False),
        ("README.md#run-it", False),
        ("#run-it", False),
        ("docs/README.md#documentation", False),
        ("README.md#run-them", True),
        ("#run-them", True),
        ("docs/no-such-page.md", True),
        ("../elsewhere.md", True),
    ],
)
def test_what_is_taken_for_astray(link: str, expected: bool) -> None:
    assert is_astray(ROOT / "README.md", link) is expected
