"""Pages and docstrings name modules that exist: `broker.turn.clock`, with or without `burrowmq.` before it.

What is checked stands between backticks and begins with a package of the server; `management` and `config` are left out,
because keys of rabbitmq.conf begin so too.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("protocol", "storage", "broker", "cli", "offline", "embedded")
NAME = re.compile(r"`(?:burrowmq\.)?((?:" + "|".join(PACKAGES) + r")(?:\.\w+)+)`")


def texts() -> Iterator[Path]:
    """Yield the pages, and the modules of the server."""
    yield from ROOT.glob("*.md")
    yield from (ROOT / "docs").rglob("*.md")
    for package in PACKAGES:
        yield from (ROOT / package).rglob("*.py")


def exists(name: str) -> bool:
    """Whether a dotted name leads to a package, a module, or something in one."""
    thing: object = importlib.import_module("burrowmq")
    path = "burrowmq"
    for part in name.split("."):
        path += f".{part}"
        is_package = hasattr(thing, "__path__")
        if is_package and importlib.util.find_spec(path) is not None:
            thing = importlib.import_module(path)
        elif hasattr(thing, part):
            thing = getattr(thing, part)
        else:
            return False
    return True


def test_every_name_in_a_text_leads_somewhere() -> None:
    astray = [
        f"{path.relative_to(ROOT)}:{number}: {name}"
        for path in texts()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for name in NAME.findall(line)
        if not exists(name)
    ]
    assert not astray, "\n".join(["names that lead nowhere:", *astray])


def test_a_name_that_leads_nowhere_is_found() -> None:
    assert exists("broker.turn.clock.Timer")
    assert not exists("broker.loop")
    assert not exists("storage.queue_log")
