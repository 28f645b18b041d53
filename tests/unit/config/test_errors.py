"""burrowmq.config.errors: what an operator reads."""

from __future__ import annotations

from burrowmq.config.errors import ConfigError, Problem


def test_a_problem_names_place_key_reason_and_neighbours() -> None:
    problem = Problem(source="f", line=3, key="k", reason="is wrong", nearest=("a", "b"))
    assert str(problem) == "f:3: k: is wrong; did you mean a or b?"
    assert str(Problem(source="--set", line=0, key="", reason="is wrong")) == "--set: is wrong"


def test_an_error_holds_all_problems() -> None:
    problems = tuple(Problem(source="f", line=line, key="k", reason="bad") for line in (1, 2))
    error = ConfigError(problems)
    assert error.problems == problems
    assert str(error) == "f:1: k: bad\nf:2: k: bad"
