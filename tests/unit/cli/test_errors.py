"""Exit codes."""

from __future__ import annotations

from burrowmq.cli import errors


def test_shapes() -> None:
    assert (errors.failure("why").code, errors.failure("why").text) == (69, "Error:\nwhy")
    assert errors.bad_argument("x").code == 65
    assert errors.bad_option("a", "x").text == "Invalid options for this command:\n\n--a : x"
    hinted = errors.bad_option("a", "x", "one of y, z")
    assert (hinted.code, hinted.text.endswith("--a : x (one of y, z)")) == (64, True)
