"""docs/tour.md names functions by their dotted names: each of them exists, in the module that the page says."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tour.md"
NAMES = sorted(set(re.findall(r"`(burrowmq(?:\.\w+)+)`", PAGE.read_text(encoding="utf-8"))))


def found(name: str) -> object:
    """Return what a dotted name stands for; AssertionError says which part of it does not exist."""
    parts = name.split(".")
    module = parts.pop(0)
    while parts and importlib.util.find_spec(f"{module}.{parts[0]}") is not None:
        module += f".{parts.pop(0)}"
        if not hasattr(importlib.import_module(module), "__path__"):
            break
    thing: object = importlib.import_module(module)
    for part in parts:
        assert hasattr(thing, part), f"docs/tour.md: {module} has no {'.'.join(parts)}"
        thing = getattr(thing, part)
    return thing


def test_the_tour_has_its_five_ways() -> None:
    text = PAGE.read_text(encoding="utf-8")
    ways = [part.count("\n1. ") for part in text.split("\n## ")[1:]]
    assert ways == [1, 1, 1, 1, 1]
    assert len(NAMES) > 40


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_the_tour_leads_to_a_function_or_class(name: str) -> None:
    assert callable(found(name)), f"docs/tour.md: {name} is no function, method or class"


def test_a_name_that_leads_nowhere_is_told() -> None:
    with pytest.raises(AssertionError, match=r"has no AmqpTransport\.receive"):
        found("burrowmq.broker.sockets.transport.AmqpTransport.receive")


def test_each_step_of_the_tour_begins_with_a_name() -> None:
    steps = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:1].isdigit()]
    astray = [line for line in steps if not re.match(r"\d+\. `burrowmq(\.\w+)+`: ", line)]
    assert not astray
