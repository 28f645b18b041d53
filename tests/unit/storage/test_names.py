"""What a queue's files are called: no queue is called like another one's level, and what was written is read."""

from __future__ import annotations

import itertools

import pytest

from burrowmq.storage.names import (
    QueueNames,
    pack_names,
    parse_names,
    parse_version,
    vhost_directory,
)

NAMES = [
    "q",
    "q\x001",
    "q\x001\x001",
    "q-1",
    "1",
    "",
    "\x001",
    "q\n",
    "\u2028é\U0001f430",
    'a": "b',
]


def test_no_two_levels_of_any_queues_share_a_directory() -> None:
    levels = [
        QueueNames("/", name, level) for name, level in itertools.product(NAMES, (0, 1, 2, 11, 255))
    ]
    assert len({names.directory for names in levels}) == len(levels)


def test_a_level_says_which_it_is() -> None:
    plain, level = QueueNames("/", "orders"), QueueNames("/", "orders", 7)
    assert "-" not in plain.directory
    assert level.directory.endswith("-7")
    assert plain.directory != vhost_directory("/")
    # The names of format 1, which stores still have.
    assert plain.directory == "7003fa17274fa7fd237b24c5"
    assert QueueNames("/", "orders", 1).directory == "2bb2b27c4054778491a4a336-1"
    assert QueueNames("/", "orders\x001").directory == "2bb2b27c4054778491a4a336"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("level", [0, 1, 255])
@pytest.mark.parametrize("version", [1, 2])
def test_what_is_written_is_read(name: str, level: int, version: int) -> None:
    data = pack_names(QueueNames("v\n", name, level), version)
    assert parse_names(data) == QueueNames("v\n", name, level)
    assert parse_version(data) == version
    assert data.count(b"\n") == 4


def test_a_file_of_format_1_names_level_0() -> None:
    data = b'VHOST: "/"\nQUEUE: "q\\u00001"\nINDEX: v1\n'
    assert parse_names(data) == QueueNames("/", "q\x001")
    assert parse_version(data) == 1


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xfe",
        b'VHOST: "/"\n',
        b'VHOST: /\nQUEUE: "q"\n',
        b'VHOST: "/"\nQUEUE: "q"\nLEVEL: x\n',
    ],
)
def test_what_is_not_whole_names_nothing(data: bytes) -> None:
    assert parse_names(data) is None
    assert parse_version(data) == 2
