"""Data directories that released nodes left, opened by today's node: every message and definition is in its place.

`tests/data/stores/<release>/` holds the directories as archives, each with a manifest of what is in it, from clean stops
and from crashes; docs/formats/README.md says how they are made. Messages are compared with body, properties, headers and
their wire types, order and redelivered flag; definitions as the export of the management API gives them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.store_archives import reading
from tests.support.store_archives.archive import Archive, archives

Manifest = dict[str, Any]


@pytest.fixture(params=archives(), ids=lambda archive: archive.title)
def archive(request: pytest.FixtureRequest) -> Archive:
    """Give each archive of each release."""
    found: Archive = request.param
    return found


def store_format(data_dir: Path) -> int:
    """Give the format that a data directory says it has."""
    found: int = json.loads((data_dir / "STORE.json").read_text(encoding="utf-8"))["format"]
    return found


@pytest.fixture
def manifest(archive: Archive) -> Manifest:
    """Give what is in the archive."""
    return archive.manifest()


@pytest.fixture
def node(archive: Archive, manifest: Manifest, tmp_path: Path) -> Iterator[BrokerProcess]:
    """Give today's node, ready on the archived data directory."""
    archive.unpack(tmp_path / "data")
    process = BrokerProcess(tmp_path / "data", manifest["settings"])
    process.start()
    yield process
    process.kill()


def test_everything_is_found(node: BrokerProcess, manifest: Manifest) -> None:
    reading.check(node.amqp_port, node.management_port, manifest)
    assert node.stop() == 0


@pytest.mark.parametrize(
    "archive",
    [one for one in archives() if one.name.endswith("-log")],
    ids=lambda one: one.title,
    indirect=True,
)
def test_a_commit_log_may_be_switched_off(
    archive: Archive, manifest: Manifest, tmp_path: Path
) -> None:
    archive.unpack(tmp_path / "data")
    node = BrokerProcess(tmp_path / "data", {"store_commit_log": "off"})
    node.start()
    try:
        reading.check(node.amqp_port, node.management_port, manifest)
        assert node.stop() == 0
    finally:
        node.kill()
    assert store_format(tmp_path / "data") == 2


@pytest.mark.parametrize(
    "archive",
    [one for one in archives() if one.name == "killed"],
    ids=lambda one: one.title,
    indirect=True,
)
def test_a_store_gets_a_commit_log_and_can_go_back(
    archive: Archive, manifest: Manifest, tmp_path: Path
) -> None:
    archive.unpack(tmp_path / "data")
    node = BrokerProcess(tmp_path / "data")
    node.start()
    try:
        assert store_format(tmp_path / "data") == 3
        node.kill()
        node.settings = {"store_commit_log": "off"}
        node.start()
        assert store_format(tmp_path / "data") == 2
        reading.mark_crashed(manifest["queues"])
        manifest["queues"] = [
            queue for queue in manifest["queues"] if queue["name"] != reading.FILLED_WHEN_OPENED
        ]
        reading.check(node.amqp_port, node.management_port, manifest)
        assert node.stop() == 0
    finally:
        node.kill()


def test_everything_is_found_after_another_crash(node: BrokerProcess, manifest: Manifest) -> None:
    node.kill()
    node.start()
    reading.mark_crashed(manifest["queues"])
    # The crash may come before, between or after what expires, so that it is there once or twice, redelivered or not.
    manifest["queues"] = [
        queue for queue in manifest["queues"] if queue["name"] != reading.FILLED_WHEN_OPENED
    ]
    reading.check(node.amqp_port, node.management_port, manifest)
