"""A node on data directories of format 1, one stopped by SIGTERM and one by kill -9.

`tests/data/store-format-1-*.tar.xz` were written by nodes from before 0.1.0: `orders` with priorities up to 3, `old` up to 2 in files
of version 1, a queue named `plain`, NUL, 1 beside `plain`, which has no priorities, and a queue named `both`, NUL, 1
beside `both`, which has: these two wrote to the same files. Limits: 256 entries, 64 KB.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from burrowmq.offline.__main__ import main
from tests.support.black_box import get_all
from tests.support.broker_process import BrokerProcess
from tests.support.node_client import NodeClient

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[1] / "data"
LIMITS = {"queue_index_segment_entry_count": "256", "msg_store_file_size_limit": "65536"}
# Queue, highest level, messages; message n was published with priority n % 4.
QUEUES = (
    ("orders", 3, 20),
    ("old", 2, 20),
    ("plain", 0, 0),
    ("plain\x001", 0, 10),
    ("both", 1, 10),
)


@pytest.fixture(params=["clean", "killed"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Give such a data directory."""
    with tarfile.open(DATA / f"store-format-1-{request.param}.tar.xz") as archive:
        archive.extractall(tmp_path / "data", filter="data")
    return tmp_path / "data"


@pytest.fixture
def start() -> Iterator[Callable[..., NodeClient]]:
    """Yield what starts a node on a directory and connects to it."""
    clients: list[NodeClient] = []

    def start(directory: Path, **limits: str) -> NodeClient:
        process = BrokerProcess(directory, {**LIMITS, **limits})
        process.start()
        clients.append(NodeClient(process))
        return clients[-1]

    yield start
    for client in clients:
        client.disconnect()
        client.process.kill()


def expected(queue: str, highest: int, count: int) -> list[bytes]:
    by_level: list[list[int]] = [[] for _ in range(highest + 1)]
    for number in range(count):
        by_level[min(number % 4, highest)].append(number)
    return [f"{queue} {number}".encode() for level in reversed(by_level) for number in level]


def check_messages(client: NodeClient) -> None:
    channel = client.channel()
    for queue, highest, count in QUEUES:
        assert [body.rstrip() for body in get_all(channel, queue)] == expected(
            queue, highest, count
        )
    assert get_all(channel, "both\x001") == []


@pytest.mark.parametrize("is_clean", [True, False], ids=["sigterm", "kill"])
def test_every_message_is_in_its_queue(
    directory: Path, start: Callable[..., NodeClient], is_clean: bool
) -> None:
    process = start(directory).process
    if is_clean:
        assert process.stop() == 0
    else:
        process.kill()
    assert main(["--data-dir", str(directory), "check"]) == 0
    client = start(directory)
    # What once were the same files are not any more.
    client.channel().queue_delete("both\x001")
    client.channel().queue_declare("both\x001", durable=True)
    check_messages(client)


def test_a_check_before_the_first_start_names_the_levels(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    assert main(["--data-dir", str(directory), "check"]) == 0
    report = capsys.readouterr().out
    assert "queue 'orders' in vhost '/'" in report
    assert "queue 'orders' level 3 in vhost '/'" in report
    assert "queue 'old' level 2 in vhost '/'" in report
    after = {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}
    assert {path for path in after if before.get(path) != after[path]} <= {directory / "LOCK"}


@pytest.mark.parametrize("directory", ["clean"], indirect=True)
def test_a_check_before_the_first_start_misses_what_the_clean_stop_named(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = next(directory.glob("vhosts/*/queues/*/0.qi"))
    missing.unlink()
    assert main(["--data-dir", str(directory), "check"]) == 1
    said = f"{missing.relative_to(directory)}  0 B  DAMAGED; missing since the clean stop"
    assert said in capsys.readouterr().out


def test_other_limits_are_taken_on_the_way(
    directory: Path, start: Callable[..., NodeClient], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--data-dir", str(directory), "resegment", "--entries", "512"]) == 0
    assert "60 messages" in capsys.readouterr().out
    assert main(["--data-dir", str(directory), "check"]) == 0
    assert "queue 'old' level 2 in vhost '/'" in capsys.readouterr().out
    check_messages(start(directory, queue_index_segment_entry_count="512"))
