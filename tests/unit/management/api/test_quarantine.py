"""/api/burrowmq/quarantine: listed, put back into its queue, dropped.

Covers: management/commands/quarantine.py
"""

from __future__ import annotations

import errno

import pytest

from burrowmq.management.commands.quarantine import is_whole
from burrowmq.storage.names import QueueNames
from tests.support.bench.world import publish
from tests.support.fake_ticket import AnswersLater
from tests.support.served import Served

PATH = "/api/burrowmq/quarantine"
RAW = (
    b"\x02\x00\x01\x00\x00\x00\x0e\x00\x3c\x00\x00" + (4).to_bytes(8, "big") + b"\x00\x00\xce"
    b"\x03\x00\x01\x00\x00\x00\x04body\xce"
)
ADDRESS = b"\x00\x01q"


def spoiled(served: Served, place: int) -> str:
    """Damage the last of three messages in one octet of its record, and have it found; its name in quarantine."""
    disk = served.bench.disk
    served.bench.queue("t", arguments={"x-queue-mode": "lazy"})
    publish(served.bench.clients[0], "t", 3, size=1000)
    ours = QueueNames("/", "t", 0).directory
    (path,) = [each for each in disk.paths() if ours in each and each.endswith(".qs")]
    disk.damage(path, disk.file_size(path) - place, b"?")
    served.api(
        "POST",
        "/api/queues/%2F/t/get",
        {"count": 3, "ackmode": "ack_requeue_true", "encoding": "auto"},
    )
    served.bench.perform(served.node.engine.idle)
    (row,) = served.get(PATH)
    assert (row["queue"], row["seq"], row["reason"]) == ("t", 2, "unreadable record")
    return str(row["name"])


def test_a_message_whose_body_is_damaged_goes_back_as_it_is(served_files: Served) -> None:
    served = served_files
    name = spoiled(served, 10)
    assert served.get("/api/queues/%2F/t")["messages"] == 2
    assert served.api("POST", f"{PATH}/{name}/restore").status == 204
    assert served.get("/api/queues/%2F/t")["messages"] == 3
    assert served.get(PATH) == []
    assert served.api("POST", f"{PATH}/{name}/restore").status == 404


def test_one_whose_envelope_is_damaged_does_not_and_can_be_dropped(served_files: Served) -> None:
    served = served_files
    name = spoiled(served, 1)
    answer = served.api("POST", f"{PATH}/{name}/restore")
    assert (answer.status, "its envelope is damaged" in answer.body["reason"]) == (400, True)
    assert served.api("DELETE", f"{PATH}/{name}").status == 204
    assert served.get(PATH) == []
    for other in ("..%2FSTORE.json", "x.msg"):
        assert served.api("DELETE", f"{PATH}/{other}").status == 404


@pytest.mark.parametrize(
    ("address", "raw", "size", "expected"),
    [
        (ADDRESS, RAW, 4, True),
        (ADDRESS, RAW, 5, False),
        (ADDRESS, RAW[:-1], 4, False),
        (ADDRESS, RAW[:-1] + b"?", 4, False),
        (ADDRESS, b"", 0, False),
        (b"", RAW, 4, False),
        (ADDRESS, RAW[:7] + b"?" + RAW[8:], 4, False),  # the class
        (ADDRESS, RAW[:9] + b"?" + RAW[10:], 4, False),  # the weight
        (ADDRESS, RAW[:2] + b"\x02" + RAW[3:], 4, False),  # frames of two channels
        (ADDRESS + b"?", RAW, 4, False),
        (ADDRESS, RAW[:19] + b"\xff\xff" + RAW[21:], 4, False),
    ],
)
def test_only_what_is_amqp_is_whole(address: bytes, raw: bytes, size: int, expected: bool) -> None:
    assert is_whole((address, raw, size, 0)) is expected


def test_what_goes_to_a_queue_elsewhere_is_kept_until_that_has_it(
    served_files: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = served_files
    name = spoiled(served, 10)
    elsewhere = AnswersLater(is_full=True)
    kind = type(served.node.vhosts["/"].queues["t"])
    monkeypatch.setattr(kind, "publish", lambda _, *given: elsewhere.publish(*given))
    assert served.api("POST", f"{PATH}/{name}/restore").status == 400
    assert [row["name"] for row in served.get(PATH)] == [name]
    elsewhere.is_full = False
    assert served.api("POST", f"{PATH}/{name}/restore").status == 204
    assert served.get(PATH) == []


def test_a_restored_message_stays_in_quarantine_until_its_queue_has_it_durably(
    served_files: Served,
) -> None:
    served, ours = served_files, QueueNames("/", "t", 0).directory
    disk = served.bench.disk
    served.bench.queue("t", arguments={"x-queue-mode": "lazy"}, durable=True)
    publish(served.bench.clients[0], "t", 3, size=1000, is_persistent=True)
    (path,) = [each for each in disk.paths() if ours in each and each.endswith(".qs")]
    disk.damage(path, disk.file_size(path) - 10, b"?")
    get = {"count": 3, "ackmode": "ack_requeue_true", "encoding": "auto"}
    served.api("POST", "/api/queues/%2F/t/get", get)
    served.bench.perform(served.node.engine.idle)
    (row,) = served.get(PATH)
    disk.fail("pwrite", errno.EIO, path_part=ours, times=1 << 20)
    answer = served.api("POST", f"{PATH}/{row['name']}/restore")
    assert served.get("/api/queues/%2F/t")["state"] == "blocked"
    assert [each["name"] for each in served.get(PATH)] == [row["name"]]
    assert answer.status != 204
