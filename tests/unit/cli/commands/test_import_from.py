"""import-from's parts that need no node there: --stop, --check, its usage (see tests/integration/test_import_from.py)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.served import Served


def test_a_check_lists_what_has_no_equal(served: Served, tmp_path: Path) -> None:
    path = tmp_path / "definitions.json"
    path.write_text(json.dumps({"exchanges": [{"vhost": "/", "name": "x", "type": "x-jms-topic"}]}))
    output = served.ctl("import-from", "--check", str(path))
    assert output.code == 0
    assert "left out, with its bindings" in output.out
    path.write_text("{}")
    assert (
        "Everything there has an equal here" in served.ctl("import-from", "--check", str(path)).out
    )
    path.write_text("{")
    assert served.ctl("import-from", "--check", str(path)).code == 65


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "needs an AMQP URI"), (["amqp://h"], "--management is missing"),
        (["http://h", "--management", "http://h"], "must be an amqp or amqps URI"),
        (["amqp://", "--management", "http://h"], "URI with a host"),
        (["amqp://h:x", "--management", "http://h"], "URI with a host"),
        (["amqp://u:secret@h/a%2Fb", "--management", "http://h"], "leave 'a/b' out of the URI"),
        (["amqp://h", "--management", "u:secret@nowhere"], "--management : nowhere"),
        (["amqp://h", "--management", "http://h", "--rate", "-5"], "so many messages a second"),
    ],
)  # fmt: skip
def test_bad_usage(served: Served, words: list[str], told: str) -> None:
    output = served.ctl("import-from", *words)
    assert output.code == 64
    assert told in output.err
    assert "secret" not in output.err


def test_its_help_explains_each_option(served: Served) -> None:
    for words in (("help", "import-from"), ("help", "import_from"), ("import-from", "--help")):
        text = served.ctl(*words).out
        usage, _, options = text.partition("Arguments and Options")
        own, _, _ = options.partition("General Options")
        for option in re.findall(r"\[(--[a-z-]+)", usage.partition("import_from")[2]):
            assert f"   {option}" in own or f", {option}" in own, option


def test_there_is_nothing_to_stop(served: Served) -> None:
    answer = served.ctl("import-from", "--stop")
    assert (answer.code, answer.err) == (69, "Error:\nthere was no import since the node started\n")
