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


def test_letters_of_one_command() -> None:
    for command in ("delete_queue", "delete-queue"):
        assert parse(["-p", "v", command, "q", "-e", "-u"]).flags == {"if-empty", "if-unused"}
    assert parse(["list", "-e"]).flags == {"implicitly-enabled"}
    assert parse(["delete_queue", "q", "--implicitly-enabled"]).flags == {"implicitly-enabled"}
    assert parse(["list_queues", "-u"]).unknown == ["-u"]
    assert parse(["wait", "-P", "7"]).values == {"pid": "7"}
