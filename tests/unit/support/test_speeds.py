"""Every test runs somewhere, and what runs at one speed has nothing in it that differs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.speeds import COMPILED_RUN_ONLY, ONE_SPEED_EACH, is_left_to_the_other

ROOT = Path(__file__).resolve().parents[3]
# What builds, and starts what it has built.
BUILDS = ("tests/deployment/", "tests/packaging/", "tests/architecture/")
WHERE_SPEEDS_DIFFER = re.compile(
    r"^(from|import) burrowmq\.(broker|protocol|storage)", re.MULTILINE
)
ABOVE_THE_STORE = re.compile(r"^(from|import) burrowmq\.(broker|management|protocol)", re.MULTILINE)


def offenders(place: str, forbidden: re.Pattern[str]) -> list[Path]:
    found = [ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py"))
    assert found
    return [path for path in found if forbidden.search(path.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("place", [each for each in COMPILED_RUN_ONLY if each not in BUILDS])
def test_no_compiled_module_has_a_part_in_what_the_compiled_run_does_for_both(place: str) -> None:
    assert offenders(place, WHERE_SPEEDS_DIFFER) == []


@pytest.mark.parametrize("place", ONE_SPEED_EACH)
def test_the_store_alone_is_in_what_each_speed_does_its_part_of(place: str) -> None:
    assert offenders(place, ABOVE_THE_STORE) == []


@pytest.mark.parametrize("place", [*COMPILED_RUN_ONLY, *ONE_SPEED_EACH])
def test_each_of_these_runs_at_one_speed(place: str) -> None:
    for number in range(20):
        test = f"{place}::test_it[{number}]"
        left = [is_left_to_the_other(test, is_interpreted=speed) for speed in (False, True)]
        assert sorted(left) == [False, True]


def test_the_seeds_of_a_file_are_run_by_both() -> None:
    for place in ONE_SPEED_EACH:
        tests = [f"{place}::test_it[{number}]" for number in range(40)]
        share = sum(is_left_to_the_other(test, is_interpreted=True) for test in tests)
        assert 8 <= share <= 32


@pytest.mark.parametrize(
    ("test", "is_dealt"),
    [
        ("tests/crash/test_backup.py::test_x[on]", True),
        ("tests/crash/test_backup.py::test_x[off]", False),
        ("tests/crash/test_full_disk.py::test_x[ext4-on]", True),
        ("tests/crash/test_key_order.py::test_x[killed, with a commit log]", True),
        ("tests/crash/test_key_order.py::test_x[killed]", False),
        ("tests/crash/test_commit_log.py::test_x", True),
        ("tests/integration/test_x.py::test_x[on]", False),
    ],
)
def test_with_a_commit_log_a_node_is_killed_at_one_speed(test: str, is_dealt: bool) -> None:
    left = [is_left_to_the_other(test, is_interpreted=speed) for speed in (False, True)]
    assert sorted(left) == [False, is_dealt]


def test_all_others_run_at_both_speeds() -> None:
    for test in ("tests/unit/broker/test_x.py::test_y", "tests/simulation/test_machine.py::test_z"):
        assert not is_left_to_the_other(test, is_interpreted=False)
        assert not is_left_to_the_other(test, is_interpreted=True)
