"""import-from's parts that need no node there: --stop, --check, its usage (see tests/integration/test_import_from.py)."""

from __future__ import annotations

import json
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
    ("words", "code"),
    [
        ([], 64), (["amqp://h"], 64), (["http://h", "--management", "http://h"], 64),
        (["amqp://h", "--management", "nowhere"], 64),
    ],
)  # fmt: skip
def test_bad_usage(served: Served, words: list[str], code: int) -> None:
    assert served.ctl("import-from", *words).code == code


def test_there_is_nothing_to_stop(served: Served) -> None:
    assert served.ctl("import-from", "--stop").code != 0
