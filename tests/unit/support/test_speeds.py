"""Every test runs somewhere, and what runs at one speed has nothing in it that differs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.speeds import COMPILED_RUN_ONLY, is_left_to_the_other

ROOT = Path(__file__).resolve().parents[3]
# What builds, and starts what it has built.
BUILDS = ("tests/deployment/", "tests/packaging/", "tests/architecture/")
WHERE_SPEEDS_DIFFER = re.compile(
    r"^(from|import) burrowmq\.(broker|protocol|storage)", re.MULTILINE
)


def offenders(place: str, forbidden: re.Pattern[str]) -> list[Path]:
    found = [ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py"))
    assert found
    return [path for path in found if forbidden.search(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("place", [each for each in COMPILED_RUN_ONLY if each not in BUILDS])
def test_no_compiled_module_has_a_part_in_what_the_compiled_run_does_for_both(place: str) -> None:
    assert offenders(place, WHERE_SPEEDS_DIFFER) == []


@pytest.mark.parametrize("place", COMPILED_RUN_ONLY)
def test_each_of_these_runs_at_one_speed(place: str) -> None:
    test = f"{place}::test_it"
    assert not is_left_to_the_other(test, is_interpreted=False)
    assert is_left_to_the_other(test, is_interpreted=True)


def test_all_others_run_at_both_speeds() -> None:
    for test in ("tests/unit/broker/test_x.py::test_y", "tests/simulation/test_machine.py::test_z"):
        assert not is_left_to_the_other(test, is_interpreted=False)
        assert not is_left_to_the_other(test, is_interpreted=True)


@pytest.mark.parametrize("module", ["simulation/test_io_errors.py", "crash/test_faulty_disk.py"])
def test_each_fault_runs_at_one_speed_and_half_of_them_at_each(module: str) -> None:
    tests = [f"tests/{module}::test_it[{at}]" for at in range(400)]
    compiled = {one for one in tests if not is_left_to_the_other(one, is_interpreted=False)}
    interpreted = {one for one in tests if not is_left_to_the_other(one, is_interpreted=True)}
    assert compiled | interpreted == set(tests)
    assert not compiled & interpreted
    assert abs(len(compiled) - len(interpreted)) < 80
