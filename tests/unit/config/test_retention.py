"""How long samples are kept, by configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from burrowmq.config.errors import ConfigError
from burrowmq.config.load import load
from burrowmq.config.retention import PREFIX, retention


def test_ages_are_words_or_seconds() -> None:
    values = {f"{PREFIX}global.day": 1200, f"{PREFIX}global.minute": 1, f"{PREFIX}global.90": 5}
    values[f"{PREFIX}basic.hour"] = 60
    assert retention(values, "global") == ((60, 1), (90, 5), (86_400, 1200))
    assert retention(values, "basic") == ((3600, 60),)
    assert retention(values, "detailed") == ()


@pytest.mark.parametrize("section", ["global", "basic", "detailed"])
@pytest.mark.parametrize("age", ["week", "0", "-5", "99999999999", "١"])
def test_what_is_no_age_is_refused(age: str, section: str) -> None:
    with pytest.raises(ConfigError, match="not an age"):
        load(None, {}, ((f"{PREFIX}{section}.{age}", "5"),), None)


def test_what_is_no_age_is_said_with_its_line_and_all_else_that_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "rabbitmq.conf"
    path.write_text(f"heartbeat = x\n{PREFIX}global.week = 5\n{PREFIX}global.hour = x\n")
    with pytest.raises(ConfigError) as caught:
        load(str(path), {}, (), None)
    found = [(each.source, each.line, each.key) for each in caught.value.problems]
    keys = ("heartbeat", f"{PREFIX}global.week", f"{PREFIX}global.hour")
    assert found == [(str(path), line, key) for line, key in enumerate(keys, 1)]


def test_a_key_of_the_file_reaches_the_management() -> None:
    given = ((f"{PREFIX}basic.minute", "1"), (f"{PREFIX}global.hour", "5"))
    found = load(None, {}, given, None)
    assert found.config.management.basic_retention == ((60, 1),)
    assert found.config.management.global_retention == ((3600, 5),)
    assert not [each for each in found.warnings if "retention" in each]
