"""What is in quarantine can be listed, put back or dropped, or the answer says why not, whatever state the rest is in.

Covers: management/commands/quarantine.py
"""

from __future__ import annotations

import asyncio
import errno
import time
from pathlib import Path

import pytest

from burrowmq.config.schema import StoreConfig
from burrowmq.management.commands import quarantine
from burrowmq.storage.names import QueueNames, vhost_directory
from tests.support.bench.client import Client
from tests.support.bench.world import publish, small_world
from tests.support.patience import patient
from tests.support.served import Served, serving

PATH = "/api/burrowmq/quarantine"


def spoiled(served: Served, vhost: str = "/", client: Client | None = None) -> str:
    """Damage the body of the last of three persistent messages, and have it found; its name in quarantine."""
    disk = served.bench.disk
    served.bench.queue("t", vhost=vhost, arguments={"x-queue-mode": "lazy"})
    publish(client or served.bench.clients[0], "t", 3, size=1000, is_persistent=True)
    ours = f"/{vhost_directory(vhost)}/queues/{QueueNames(vhost, 't').directory}/"
    paths: list[str] = []
    while not (paths and served.node.engine.is_idle()):  # between two commits it is idle, too
        served.bench.perform(lambda: None)
        paths = [one for one in disk.paths() if ours in one and one.endswith(".qs")]
    (path,) = paths
    disk.damage(path, disk.file_size(path) - 10, b"?")
    wanted = {"count": 3, "ackmode": "ack_requeue_true", "encoding": "auto"}
    served.api("POST", f"/api/queues/{quoted(vhost)}/t/get", wanted)
    deadline = time.monotonic() + patient(10)
    rows: list[dict[str, object]] = []
    while not rows and time.monotonic() < deadline:
        served.bench.perform(served.node.engine.idle)
        rows = [each for each in served.get(PATH) if each["vhost"] == vhost]
    (row,) = rows
    return str(row["name"])


def quoted(vhost: str) -> str:
    return vhost.replace("/", "%2F")


def count(served: Served, vhost: str = "/") -> int:
    return int(served.get(f"/api/queues/{quoted(vhost)}/t")["messages"])


def restored(served: Served, name: str) -> tuple[int, str]:
    answer = served.api("POST", f"{PATH}/{name}/restore")
    return answer.status, answer.body["reason"] if answer.status != 204 else ""


def test_the_queue_is_full(served_files: Served) -> None:
    served = served_files
    name = spoiled(served)
    policy = {"pattern": "^t$", "definition": {"max-length": 2, "overflow": "reject-publish"}}
    served.api("PUT", "/api/policies/%2F/p", policy)
    status, reason = restored(served, name)
    assert (status, "is it full?" in reason, len(served.get(PATH))) == (400, True, 1)
    served.api("DELETE", "/api/queues/%2F/t/contents")
    assert (restored(served, name), count(served), served.get(PATH)) == ((204, ""), 1, [])


def test_the_queue_is_gone_and_comes_again(served_files: Served) -> None:
    served = served_files
    name = spoiled(served)
    served.api("DELETE", "/api/queues/%2F/t")
    status, reason = restored(served, name)
    assert (status, "no queue 't'" in reason, len(served.get(PATH))) == (400, True, 1)
    served.bench.queue("t")
    assert (restored(served, name), count(served), served.get(PATH)) == ((204, ""), 1, [])


def test_two_virtual_hosts_have_a_queue_of_that_name(served_files: Served) -> None:
    served = served_files
    served.api("PUT", "/api/vhosts/other")
    served.api(
        "PUT", "/api/permissions/other/guest", dict.fromkeys(("configure", "write", "read"), ".*")
    )
    client = served.bench.connect(1, vhost="other")
    here, there = spoiled(served), spoiled(served, "other", client)
    assert restored(served, there) == (204, "")
    assert (count(served), count(served, "other")) == (2, 3)
    assert [row["name"] for row in served.get(PATH)] == [here]
    served.api("DELETE", "/api/vhosts/other")
    assert restored(served, here) == (204, "")
    assert count(served) == 3


def test_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = StoreConfig(commit_log="off")
    with serving(tmp_path / "data", small_world, store=store, has_disk_thread=True) as served:
        name, disk = spoiled(served), served.bench.disk
        monkeypatch.setattr(quarantine, "COMMIT_TIMEOUT_S", 0.1)
        disk.fail("pwrite", errno.ENOSPC, path_part=QueueNames("/", "t").directory, times=1 << 20)
        status, reason = restored(served, name)
        assert (status, "leaves quarantine as soon as it does" in reason) == (503, True)
        assert restored(served, name)[0] == 400
        assert [row["name"] for row in served.get(PATH)] == [name]
        disk.heal()
        deadline = time.monotonic() + patient(10)
        while served.get(PATH) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert (count(served), served.get(PATH)) == (3, [])


def test_the_application_is_stopped(served_files: Served) -> None:
    served = served_files
    name = spoiled(served)
    served.bench.lose_clients()
    served.stop_application()
    assert [
        served.api("GET", PATH).status,
        restored(served, name)[0],
        served.api("DELETE", f"{PATH}/{name}").status,
    ] == [503] * 3
    starting = served.bench.host.start_application()
    asyncio.run_coroutine_threadsafe(starting, served.bench.loop).result(20)
    assert restored(served, name) == (204, "")
    assert count(served) == 3


def test_a_file_that_somebody_has_changed_hides_no_other(served_files: Served) -> None:
    served, disk = served_files, served_files.bench.disk
    name = spoiled(served)
    directory = next(one for one in disk.paths() if one.endswith(name)).rpartition("/")[0]
    for other, content in (
        ("a.msg", b'{"queue": []}\n'),
        ("b.msg", b"[" * 100_000),
        ("c.msg", b""),
    ):
        disk.create(f"{directory}/{other}").pwrite(content, 0)
        assert restored(served, other)[0] == served.api("DELETE", f"{PATH}/{other}").status == 404
    assert [row["name"] for row in served.get(PATH)] == [name]
    assert restored(served, name) == (204, "")
