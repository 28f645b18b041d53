"""All scenarios: every public function of the modules in `scenarios/` that takes a `Broker`.

A scenario's name is `<module>.<function>`; what it returns is compared. Its docstring, if it has one, says what
the name cannot.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.differential.broker import Broker

Scenario = Callable[[Broker], Any]
FOLDER = Path(__file__).parent / "scenarios"


def all_scenarios() -> dict[str, Scenario]:
    """Return name and function of every scenario, in the order of the files."""
    found: dict[str, Scenario] = {}
    for path in sorted(FOLDER.glob("*.py")):
        module = importlib.import_module(f"tests.differential.scenarios.{path.stem}")
        found |= {f"{path.stem}.{name}": each for name, each in _scenarios_of(module)}
    return found


def at_once(scenario: Scenario) -> int:
    """Return how many of its module's scenarios may run at once, beside all others; 0: one after the other."""
    return int(getattr(inspect.getmodule(scenario), "BESIDE_OTHERS", 0))


def is_apart(scenario: Scenario) -> bool:
    """Say whether the scenario changes the whole node, so that it runs on two nodes that no other module uses."""
    return bool(getattr(inspect.getmodule(scenario), "NODES_APART", False))


def _scenarios_of(module: ModuleType) -> list[tuple[str, Scenario]]:
    return [
        (name, each)
        for name, each in vars(module).items()
        if inspect.isfunction(each)
        and each.__module__ == module.__name__
        and not name.startswith("_")
        and list(inspect.signature(each).parameters) == ["broker"]
    ]
