"""What a killed process leaves without a header or a name is no damage: a start takes it and loses nothing.

Covers: offline/check.py, offline/queue_check.py, offline/segment_check.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from burrowmq.offline.__main__ import main
from tests.support import offline_store

NOBODYS = "a" * 24


def vhost(path: Path) -> Path:
    return next(path.glob("vhosts/*"))


def queue(path: Path) -> Path:
    return next(path.glob("vhosts/*/queues/*"))


def segments(path: Path) -> Path:
    return vhost(path) / "msg_store_persistent"


def new_queue(path: Path) -> Path:
    return vhost(path) / "queues" / NOBODYS


def new_vhost(path: Path) -> Path:
    return path / "vhosts" / NOBODYS


Place = Callable[[Path], Path]
LEFT: list[tuple[Place, str, bytes]] = [
    (segments, "50.g0.seg", b""),
    (segments, "50.g0.seg", bytes(4096)),  # its size is durable, and nothing else
    (queue, "7.qi", b""),
    (queue, "7.idx", b""),
    (queue, "7.jif", b""),
    (queue, "7.jif", b"BQJ1\1"),
    (new_queue, ".queue_name", b""),
    (new_queue, ".queue_name", bytes(40)),
    (new_queue, ".queue_name", b'VHOST: "/'),
    (vhost, ".vhost_name", b""),  # its queues know it
    (new_vhost, ".vhost_name", b""),
]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("place", "name", "content"), LEFT)
def test_it_is_no_damage_and_a_start_loses_nothing(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    version: int,
    place: Place,
    name: str,
    content: bytes,
) -> None:
    expected = offline_store.make_store(tmp_path, scale=10, is_clean=False, version=version)
    directory = place(tmp_path)
    directory.mkdir(exist_ok=True)
    (directory / name).write_bytes(content)
    assert main(["--data-dir", str(tmp_path), "check"]) == 0
    assert "0 damaged files, 0 lost messages" in capsys.readouterr().out
    engine = offline_store.open_engine(tmp_path)
    assert engine.report.lost == 0
    engine.close()
    assert offline_store.bodies_of(tmp_path) == expected
    assert main(["--data-dir", str(tmp_path), "check"]) == 0, "nor behind that start"


@pytest.mark.parametrize("place", [new_queue, new_vhost])
def test_a_directory_that_never_came_to_its_name_is_no_damage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: Place
) -> None:
    offline_store.make_store(tmp_path, scale=10, is_clean=False)
    place(tmp_path).mkdir()
    assert main(["--data-dir", str(tmp_path), "check"]) == 0
    assert "not named yet: a start removes the directory" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("place", "name"), [(segments, "0.g0.seg"), (queue, "0.qs"), (queue, ".queue_name")]
)
def test_the_same_where_messages_were_is_damage(tmp_path: Path, place: Place, name: str) -> None:
    offline_store.make_store(tmp_path, scale=10)
    (place(tmp_path) / name).write_bytes(b"")
    assert main(["--data-dir", str(tmp_path), "check"]) == 1


def test_a_vhost_whose_name_nobody_knows_is_damaged(tmp_path: Path) -> None:
    offline_store.make_store(tmp_path, scale=10, is_clean=False)
    for path in (vhost(tmp_path) / ".vhost_name", *tmp_path.rglob(".queue_name")):
        path.write_bytes(b"")
    assert main(["--data-dir", str(tmp_path), "check"]) == 1
