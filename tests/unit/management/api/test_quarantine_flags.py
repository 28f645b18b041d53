"""What is put back from quarantine has the flags that its own header gives, or is not put back.

Covers: management/commands/quarantine.py
"""

from __future__ import annotations

import pytest

from burrowmq.management.commands.quarantine import is_whole
from burrowmq.protocol.codec import Message, join_address
from burrowmq.protocol.constants import HIDDEN, MAYBE_CC, ON_DISK, PERSISTENT
from burrowmq.protocol.hidden import Hidden, with_hidden
from burrowmq.protocol.properties import Properties, build
from burrowmq.storage.names import QueueNames
from tests.support.bench.world import publish
from tests.support.served import Served

PATH = "/api/burrowmq/quarantine"
LETTERS = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
FLAGS_AT = 24  # in a record
_START = b"\xa5\x51\x01\x00"


def spoiled(served: Served, bit: int) -> str:
    """Flip a bit of the flags of the last of three persistent messages, and have it found; its name in quarantine."""
    disk = served.bench.disk
    served.bench.queue("t", arguments={"x-queue-mode": "lazy", **LETTERS})
    served.bench.queue("dead")
    publish(served.bench.clients[0], "t", 3, size=1000, is_persistent=True)
    ours = QueueNames("/", "t").directory
    (path,) = [one for one in disk.paths() if ours in one and one.endswith(".qs")]
    content = disk.read_file(path)
    place = content.rfind(_START) + FLAGS_AT + bit // 8
    disk.damage(path, place, bytes((content[place] ^ 1 << bit % 8,)))
    got(served, "ack_requeue_true")
    served.bench.perform(served.node.engine.idle)
    (row,) = served.get(PATH)
    assert (row["queue"], row["seq"], row["reason"]) == ("t", 2, "unreadable record")
    return str(row["name"])


def got(served: Served, ackmode: str) -> None:
    wanted = {"count": 3, "ackmode": ackmode, "encoding": "auto"}
    assert served.api("POST", "/api/queues/%2F/t/get", wanted).status == 200


def test_a_persistent_message_is_not_put_back_as_a_transient_one(served_files: Served) -> None:
    served = served_files
    name = spoiled(served, PERSISTENT.bit_length() - 1)
    answer = served.api("POST", f"{PATH}/{name}/restore")
    assert (answer.status, "its envelope is damaged" in answer.body["reason"]) == (400, True)
    assert [row["name"] for row in served.get(PATH)] == [name]


@pytest.mark.parametrize("bit", range(32))
@pytest.mark.parametrize("how", ["reject", "maxlen"])
def test_what_is_put_back_can_become_a_dead_letter(
    served_files: Served, bit: int, how: str
) -> None:
    served = served_files
    served.api("POST", f"{PATH}/{spoiled(served, bit)}/restore")
    if how == "reject":
        got(served, "reject_requeue_false")
    else:
        policy = {"pattern": "^t$", "apply-to": "queues", "definition": {"max-length": 0}}
        served.api("PUT", "/api/policies/%2F/p", policy)
    served.bench.perform(served.node.engine.idle)
    left = len(served.get(PATH)) + served.get("/api/queues/%2F/t")["messages"]
    assert served.get("/api/queues/%2F/dead")["messages"] + left == 3


def message(**properties: object) -> Message:
    return build(join_address(b"x", b"key"), Properties(**properties), b"body")


@pytest.mark.parametrize(
    "whole",
    [
        message(),
        message(delivery_mode=2, headers={"CC": ["a"], "n": 1}, priority=3, user_id="guest"),
        message(expiration="60000", reply_to="amq.rabbitmq.reply-to", content_type="text/plain"),
        with_hidden(message(headers={"a": "b"}), Hidden(["k"], [{"count": 1}])),
    ],
)
def test_what_nothing_has_changed_is_whole(whole: Message) -> None:
    address, raw, size, flags = whole.address, whole.raw, whole.size, whole.flags
    assert is_whole((address, raw, size, flags))
    assert is_whole((address, raw, size, flags | ON_DISK))
    assert is_whole((address, raw, size, flags & ~MAYBE_CC))
    assert not is_whole((address, raw, size, flags ^ HIDDEN))
    assert not is_whole((address[:-1], raw, size, flags))
    for bit in (*range(17), *range(22, 31)):
        assert not is_whole((address, raw, size, flags ^ 1 << bit)), bit


def test_an_expiration_that_is_no_number_any_more_would_end_a_message_at_once() -> None:
    whole = message(expiration="60000")
    spoiled_one = whole.raw.replace(b"60000", b"6o000")
    assert not is_whole((whole.address, spoiled_one, whole.size, whole.flags))
