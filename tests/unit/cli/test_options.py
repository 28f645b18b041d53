"""argv."""

from __future__ import annotations

import pytest

from burrowmq.cli.errors import CliError
from burrowmq.cli.options import parse


def test_options_before_and_after_the_command() -> None:
    parsed = parse(
        ["-q", "-p", "v1", "list_queues", "name", "--formatter=json", "-t", "5", "--silent"]
    )
    assert parsed.words == ["list_queues", "name"]
    assert parsed.values == {"vhost": "v1", "formatter": "json", "timeout": "5"}
    assert parsed.flags == {"quiet", "silent"}


def test_words_that_only_look_like_options() -> None:
    parsed = parse(["set_permissions", "bob", "--", "-x", "--y"])
    assert parsed.words == ["set_permissions", "bob", "-x", "--y"]
    assert parse(["cmd", "-"]).words == ["cmd", "-"]


def test_unknown_options_and_missing_values() -> None:
    assert parse(["cmd", "--nosuch=1", "-z"]).unknown == ["--nosuch=1", "-z"]
    with pytest.raises(CliError):
        parse(["cmd", "--vhost"])
