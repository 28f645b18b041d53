"""A configuration of settings alone is what one without files and variables is.

Covers: config/given.py, config/setting.py
"""

from __future__ import annotations

import pytest

from burrowmq.config.errors import ConfigError
from burrowmq.config.given import given
from burrowmq.config.load import load
from burrowmq.config.setting import Setting

SETTINGS = [("heartbeat", "7"), ("channel_max", "11"), ("heartbeat", "9"), ("log.console", "false")]


def test_it_is_what_the_command_line_alone_makes() -> None:
    found = given(SETTINGS, "/data")
    assert found == load(None, {}, SETTINGS, "/data")
    assert (found.config.heartbeat_s, found.config.data_dir, found.files) == (9, "/data", ())
    (row,) = (row for row in found.effective if row.key == "heartbeat")
    assert (row.value, row.source) == ("9", "--set")


def test_everything_that_is_wrong_is_said_together() -> None:
    with pytest.raises(ConfigError) as caught:
        given([("heartbeat", "x"), ("heart_beat", "1")], "/data")
    assert [each.key for each in caught.value.problems] == ["heartbeat", "heart_beat"]


def test_who_has_no_command_line_calls_the_place_otherwise() -> None:
    with pytest.raises(ConfigError, match=r"^config: heart_beat: there is no setting"):
        given([("heart_beat", "1")], "/data", source="config")


def test_the_environment_has_no_part_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RABBITMQ_NODE_PORT", "1234")
    assert {each.port for each in given([], "/data").config.listeners} == {5672}


def test_a_setting_knows_its_place() -> None:
    assert Setting("a", "b", "file", 3)._replace(line=0) == ("a", "b", "file", 0)
