"""natsd on three servers: another one leads soon, a message is written in fewer pieces, and one member alone keeps all."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from pika.adapters.blocking_connection import BlockingChannel

from bench import native
from bench.nats_servers import NatsCluster, NatsServer
from tests.support.black_box import eventually
from tests.support.broker_process import BrokerProcess
from tests.support.front_ends import (
    PERSISTENT,
    Nodes,
    change,
    declare,
    leader_of,
    members_of,
    take,
)
from tests.support.patience import patient

ROOT = Path(__file__).parents[2]
STOCK_LEAST_S = 4.0 - 1.0
"""A stock server waits for four seconds at least since it heard from the leader, which speaks once a second."""


@pytest.fixture
def natsd() -> Path:
    if shutil.which("go") is None:
        pytest.skip("building natsd needs Go")
    subprocess.run(["make", "--quiet", "natsd"], cwd=ROOT, check=True)
    return ROOT / "build" / "natsd"


@pytest.fixture
def nodes(natsd: Path, tmp_path: Path) -> Iterator[Nodes]:
    cluster = NatsCluster(tmp_path, binary=natsd)
    found = Nodes(tmp_path / "nodes", cluster)
    try:
        cluster.start()
        yield found
    finally:
        found.close()
        cluster.stop()


@pytest.mark.timeout(400)
def test_another_leads_soon(nodes: Nodes) -> None:
    process = nodes.start()
    declare(nodes.channel(process), "q")
    channel = nodes.channel(process)
    channel.confirm_delivery()
    gaps_s: list[float] = []
    for _ in range(3):  # the best of three: the machine may be busy
        channel.basic_publish("", "q", b"m", PERSISTENT)
        leader = eventually(  # as of the last look, which nobody may have answered
            lambda: process.ctl("-q", "list_queues", "--no-table-headers", "leader").strip()
        )
        server = nodes.cluster.by_name(leader)
        server.kill()
        began_s = time.monotonic()
        channel.basic_publish("", "q", b"m", PERSISTENT)
        gaps_s.append(time.monotonic() - began_s)
        server.start()
        time.sleep(6)  # it has to catch up before another one goes
    assert min(gaps_s) < STOCK_LEAST_S, gaps_s


def load(process: BrokerProcess, name: str, count: int) -> None:
    """So many confirmed messages, in bursts."""
    options: dict[str, native.Option] = {"size": 1024, "persistent": True, "confirm": 1000}
    port = urlsplit(process.url).port
    assert port is not None
    native.run(port, name=name, durable=True, append=True, messages=count, **options)


def writes_of(servers: list[NatsServer], process: BrokerProcess) -> float:
    """System calls of these servers that write something, for each message of a load."""

    def writes() -> int:
        texts = (Path(f"/proc/{each.pid}/io").read_text() for each in servers)
        return sum(int(text.split("syscw:")[1].split()[0]) for text in texts)

    load(process, "q", 2_000)  # what a queue costs once
    before = writes()
    load(process, "q", 20_000)
    return (writes() - before) / 20_000


@pytest.mark.timeout(400)
def test_the_block_of_a_stream_is_not_written_message_by_message(
    nodes: Nodes, natsd: Path, nats_server: Path, tmp_path: Path
) -> None:
    if nats_server.samefile(natsd):
        pytest.skip("BURROWMQ_NATS_SERVER names natsd: nothing to compare it with")
    process = nodes.start()
    declare(nodes.channel(process), "q")
    mine = writes_of(nodes.cluster.servers, process)
    stock = NatsCluster(tmp_path / "stock", binary=nats_server)
    try:
        stock.start()
        others = Nodes(tmp_path / "others", stock)
        try:
            other = others.start()
            declare(others.channel(other), "q")
            theirs = writes_of(stock.servers, other)
        finally:
            others.close()
    finally:
        stock.stop()
    # Each of the three servers writes each message to its log, and a stock one to its block as well.
    assert theirs - mine > 2.5, (mine, theirs)


class Publisher(threading.Thread):
    """Publishes its name and numbers to "q", each after the confirm of the one before, until it is told to end."""

    def __init__(self, name: str, channel: BlockingChannel) -> None:
        super().__init__(name=name, daemon=True)
        self._channel = channel
        self.confirmed: list[bytes] = []
        self.over = threading.Event()

    def run(self) -> None:
        self._channel.confirm_delivery()
        while not self.over.is_set():
            body = f"{self.name}-{len(self.confirmed)}".encode()
            self._channel.basic_publish("", "q", body, PERSISTENT)
            self.confirmed.append(body)


@pytest.mark.timeout(400)
def test_a_member_that_is_left_alone_has_what_it_confirmed(nodes: Nodes) -> None:
    """Its log is gone: what it says it has is in the block of the stream, and not on the way there.

    Kills alone would hardly find that: on the way is a message for a millisecond, and a burst is written as one.
    """
    process = nodes.start()
    declare(nodes.channel(process), "q")
    for _ in range(2):
        assert change(process, "delete_member", "q", leader_of(process)) == ""
    (last,) = members_of(process)
    server = nodes.cluster.by_name(last)
    assert writes_of([server], process) >= 1
    nodes.channel(process).queue_purge("q")
    publishers = [Publisher(f"p{number}", nodes.channel(process)) for number in range(8)]
    for each in publishers:
        each.start()
    for _ in range(5):
        wanted = [len(each.confirmed) + 50 for each in publishers]
        for each, count in zip(publishers, wanted, strict=True):
            eventually(lambda of=each, least=count: len(of.confirmed) >= least, patient(60))
        server.kill()
        server.start()
    for each in publishers:
        each.over.set()
    for each in publishers:
        each.join(patient(60))
        assert not each.is_alive()
    channel = nodes.channel(process)
    count = declare(channel, "q")
    found = [body for _, _, body in take(channel, "q", count)]
    assert {body for each in publishers for body in each.confirmed} <= set(found)


def end_cleanly(server: NatsServer) -> None:
    """It cuts its logs on the way."""
    status = Path(f"/proc/{server.pid}/stat")
    os.kill(server.pid, signal.SIGTERM)
    eventually(lambda: status.read_text().rpartition(")")[2].split()[0] == "Z", patient(30))
    server.kill()  # nobody else waits for it


@pytest.mark.timeout(400)
def test_servers_that_have_lost_their_last_blocks_do_not_wait_for_each_other(
    nodes: Nodes, tmp_path: Path
) -> None:
    """After a purge the number of the last message was in a block that nobody had synced."""
    process = nodes.start()
    declare(nodes.channel(process), "q")
    load(process, "q", 2_000)
    servers = nodes.cluster.servers
    for each in servers:
        end_cleanly(each)
    for each in servers:
        each.start()
    channel = nodes.channel(process)
    assert declare(channel, "q") == 2_000
    channel.queue_purge("q")
    for each in servers:
        each.kill()
    for each in servers:
        (stream,) = (tmp_path / each.name).glob("jetstream/*/streams/Q_*")
        assert (stream / "flushed.db").stat().st_size == 40
        blocks = list((stream / "msgs").glob("*.blk"))
        assert blocks
        for block in blocks:
            os.truncate(block, 0)
        (stream / "msgs" / "index.db").unlink(missing_ok=True)
    for each in servers:
        each.start()
    declare(nodes.channel(process), "q")
    load(process, "q", 100)
    assert declare(nodes.channel(process), "q") == 100


@pytest.mark.timeout(400)
def test_what_a_start_believes_and_what_damage_it_survives(natsd: Path) -> None:
    """In the server's own package, and with its types."""
    command = ["go", "test", "-vet=off", "-count=1", "-run", "^TestWhat", "./server"]
    sources = natsd.with_name("nats-server")
    done = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no tests to run" not in done.stdout


@pytest.mark.timeout(400)
def test_what_is_damaged_is_taken_from_the_others(nodes: Nodes, tmp_path: Path) -> None:
    """It was on disk when the log was cut, so that no log has it."""
    process = nodes.start()
    declare(nodes.channel(process), "q")
    load(process, "q", 2_000)
    servers = nodes.cluster.servers
    for each in servers:
        end_cleanly(each)
    for block in (tmp_path / servers[0].name).glob("jetstream/*/streams/Q_*/msgs/*.blk"):
        octets = bytearray(block.read_bytes())
        octets[len(octets) // 2] ^= 1
        block.write_bytes(octets)
        block.with_name("index.db").unlink(missing_ok=True)  # as an unclean end leaves it
    for each in servers:
        each.start()
    channel = nodes.channel(process)
    assert declare(channel, "q") == 2_000
    for other in servers[1:]:
        assert change(process, "delete_member", "q", other.name) == ""
    assert members_of(process) == [servers[0].name]
    assert len(take(nodes.channel(process), "q", 2_000)) == 2_000
