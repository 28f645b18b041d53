"""What commands print through."""

from __future__ import annotations

import math

import pytest

from burrowmq.cli.client import NodeClient
from burrowmq.cli.errors import CliError
from burrowmq.cli.invocation import Invocation


def invocation(values: dict[str, str], *flags: str) -> Invocation:
    node = NodeClient(url="", data_dir="d", timeout_s=1, node_option="")
    return Invocation("burrowctl", "ping", [], values, set(flags), node)


def test_banners_are_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    invocation({}).banner("shown")
    invocation({}, "quiet").banner("not")
    invocation({"formatter": "json"}).banner("not")
    assert capsys.readouterr().out == "shown\n"


def test_numbers() -> None:
    assert invocation({"limit": "3"}).number("limit", 0) == 3.0
    with pytest.raises(CliError):
        invocation({"limit": "x"}).number("limit", 0)
    for text in ("nan", "inf", "-1e999"):
        with pytest.raises(CliError, match=f"--limit : {text}"):
            invocation({"limit": text}).number("limit", 0)


def test_patience_is_the_timeout_if_one_is_given() -> None:
    assert invocation({}).patience_s(300) == 300
    assert invocation({"timeout": "1"}).patience_s(300) == 1
    endless = invocation({"timeout": "infinity"})
    endless.node.timeout_s = None
    assert endless.patience_s(300) == math.inf


def test_words_of_which_an_option_is_one() -> None:
    assert invocation({"as": "b"}).choice("as", "a", "b") == "b"
    assert invocation({}).choice("as", "a", "b") is None
    with pytest.raises(CliError, match=r"--as : x \(one of a, b\)"):
        invocation({"as": "x"}).choice("as", "a", "b")
