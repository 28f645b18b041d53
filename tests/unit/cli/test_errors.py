"""Exit codes."""

from __future__ import annotations

from burrowmq.cli import errors


def test_shapes() -> None:
    assert (errors.failure("why").code, errors.failure("why").text) == (69, "Error:\nwhy")
    assert errors.bad_argument("x").code == 65
