"""burrowmq.config.ports: two parts that would listen at one address, told with the line to look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from burrowmq.config.errors import ConfigError
from burrowmq.config.load import load


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        (
            ["management.tcp.port = 5672"],
            "1: management.tcp.port: port 5672 is that of listeners.tcp too",
        ),
        (
            ["listeners.tcp.default = 15672"],
            "1: listeners.tcp.default: port 15672 is that of management.tcp.port too",
        ),
        (
            ["heartbeat = 1", "prometheus.tcp.port = 7000", "management.tcp.port = 7000"],
            "2: prometheus.tcp.port: port 7000 is that of management.tcp.port too",
        ),
        (
            ["listeners.tcp.a = 127.0.0.1:7000", "management.tcp.port = 7000"],
            "2: management.tcp.port: port 7000 is that of listeners.tcp too",
        ),
    ],
)
def test_one_port_for_two_parts_is_told_with_its_line(
    tmp_path: Path, lines: list[str], told: str
) -> None:
    file = tmp_path / "a.conf"
    file.write_text("\n".join(lines))
    with pytest.raises(ConfigError) as caught:
        load(str(file), {}, (), None)
    (problem,) = caught.value.problems
    assert str(problem) == f"{file}:{told}, name another"


@pytest.mark.parametrize(
    ("variables", "settings", "told"),
    [
        ({"RABBITMQ_NODE_PORT": "15672"}, {}, "RABBITMQ_NODE_PORT: RABBITMQ_NODE_PORT: port 15672"),
        ({}, {"management.listener.port": "5672"}, "--set: management.listener.port: port 5672"),
        ({}, {"prometheus.tcp.listener": "127.0.0.1:5672"}, "--set: prometheus.tcp.listener: port"),
    ],
)
def test_the_other_names_of_a_port_are_told(
    variables: dict[str, str], settings: dict[str, str], told: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load(None, variables, list(settings.items()), None)
    (problem,) = caught.value.problems
    assert str(problem).startswith(told)


@pytest.mark.parametrize(
    "settings",
    [
        {"management.tcp.port": "0", "prometheus.tcp.port": "0"},
        {"listeners.tcp.a": "127.0.0.1:7000", "listeners.tcp.b": "127.0.0.1:7000"},
        {"listeners.tcp.a": "127.0.0.1:7000", "management.tcp.port": "7000", "management.tcp.ip": "::1"},
        {"listeners.tcp.a": "127.0.0.1:7000", "management.tcp.port": "7000", "management.tcp.ip": "127.0.0.2"},
    ],
)  # fmt: skip
def test_other_addresses_are_no_clash(settings: dict[str, str]) -> None:
    load(None, {}, list(settings.items()), None)


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("7000", "127.0.0.1:7000"),
        ("0.0.0.0:7000", "127.0.0.1:7000"),
        ("[::]:7000", "[::1]:7000"),
    ],
)
def test_a_listener_within_another_is_told_with_its_line(
    tmp_path: Path, wide: str, narrow: str
) -> None:
    for lines in ((wide, narrow), (narrow, wide)):
        file = tmp_path / "a.conf"
        file.write_text("".join(f"listeners.tcp.{n} = {each}\n" for n, each in enumerate(lines)))
        with pytest.raises(ConfigError) as caught:
            load(str(file), {}, (), None)
        (problem,) = caught.value.problems
        at = lines.index(narrow)
        assert str(problem) == (
            f"{file}:{at + 1}: listeners.tcp.{at}: another of listeners.tcp has port 7000 of every"
            " address, leave one of the two out"
        )
