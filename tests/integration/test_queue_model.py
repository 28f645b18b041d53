"""A real queue on a real node equals a list: any sequence of what clients, operators and power supplies do to it.

The model is the numbers of the messages in order, each ready or held by the client. Publishes with and without
confirms, persistent, transient and expiring ones, fetches, consumers, settling in any order, purges, switches of mode
and version by policy, clean restarts and kill -9 in between. It holds: no confirmed persistent message is lost, what was
acked comes back after a kill at most (the disk hears of it within 0.2 s, and no confirm waits for that), a requeued
message returns to its place, transient ones vanish with the node, expiring ones may vanish from the head, a switch loses
nothing and changes no order.

Source: RabbitMQ's property suite for classic queues, whose commands these are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pika
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.support.black_box import Taken, eventually
from tests.support.broker_process import BrokerProcess
from tests.support.node_client import NodeClient

pytestmark = pytest.mark.slow

NAMES = itertools.count()
SIZES = (10, 300, 4100, 20_000)
EXPIRATION_MS = 30


@dataclass
class Entry:
    """What is known about one message that has not been settled."""

    number: int
    persistent: bool
    confirmed: bool
    expires: bool
    tag: int | None = None  # held by the client under this delivery tag
    seen: bool = False  # handed out before


class LiveQueue(RuleBasedStateMachine):
    """See the module; `node` outlives the examples, each of which has a queue of its own."""

    node: BrokerProcess
    versions: tuple[int, ...] = (1, 2)

    def __init__(self) -> None:
        super().__init__()
        self.name = f"model-{next(NAMES)}"
        self.entries: list[Entry] = []
        self.acked: set[int] = set()  # may come back after a kill
        self.next = 0
        self.restarts = 0
        self.policy: dict[str, object] = {}
        self.client = NodeClient(self.node)

    @initialize(lazy=st.booleans(), version=st.sampled_from([None, 1, 2]))
    def declare(self, lazy: bool, version: int | None) -> None:
        if lazy:
            self.set_policy("queue-mode", "lazy")
        if version:
            self.set_policy("queue-version", version)
        self._connect()
        self.channel.queue_declare(self.name, durable=True)

    def _connect(self) -> None:
        self.client = NodeClient(self.node)
        connection = self.client.connect()
        self.channel, self.confirming = connection.channel(), connection.channel()
        self.confirming.confirm_delivery()

    # -- publishing -------------------------------------------------------------------------------------------------

    @rule(
        count=st.integers(1, 20),
        persistent=st.booleans(),
        confirmed=st.booleans(),
        expires=st.booleans(),
        size=st.sampled_from(SIZES),
    )
    def publish(
        self, count: int, persistent: bool, confirmed: bool, expires: bool, size: int
    ) -> None:
        channel = self.confirming if confirmed else self.channel
        properties = pika.BasicProperties(
            delivery_mode=2 if persistent else 1,
            expiration=str(EXPIRATION_MS) if expires and size < 300 else None,
        )
        for _ in range(count):
            body = (b"%d " % self.next).ljust(size, b".")
            channel.basic_publish("", self.name, body, properties)
            self.entries.append(
                Entry(self.next, persistent, confirmed, properties.expiration is not None)
            )
            self.next += 1
        self._count()  # answered after the publishes: those of the other channel come later

    def _count(self) -> int:
        return int(self.channel.queue_declare(self.name, passive=True).method.message_count)

    # -- taking -----------------------------------------------------------------------------------------------------

    def ready(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.tag is None]

    def _took(self, body: bytes, redelivered: bool) -> Entry:
        """Match what was handed out with the oldest ready message; expired ones before it are gone."""
        number = int(body.split(b" ")[0])
        for entry in self.ready():
            if entry.number == number:
                assert redelivered or not entry.seen, f"{number} was handed out before"
                entry.seen = True
                return entry
            assert entry.expires, f"got {number} while {entry.number} was ready"
            self.entries.remove(entry)
        raise AssertionError(f"{number} was not ready: acked, never published, or handed out twice")

    def _settled(self, entry: Entry) -> None:
        self.entries.remove(entry)
        self.acked.add(entry.number)

    def _get(self, auto_ack: bool) -> Entry | None:
        method, _, body = self.channel.basic_get(self.name, auto_ack=auto_ack)
        if method is None:
            assert all(entry.expires for entry in self.ready()), "messages were ready"
            self.entries = [entry for entry in self.entries if entry.tag is not None]
            return None
        entry = self._took(body, method.redelivered)
        entry.tag = method.delivery_tag
        if auto_ack:
            self._settled(entry)
        return entry

    @rule(count=st.integers(1, 15), auto_ack=st.booleans())
    def get(self, count: int, auto_ack: bool) -> None:
        for _ in range(count):
            if self._get(auto_ack) is None:
                return

    @rule(prefetch=st.integers(1, 25), end=st.sampled_from(["ack", "discard", "give back"]))
    def consume(self, prefetch: int, end: str) -> None:
        """A consumer on a channel of its own takes so many and settles them all at once."""
        channel = self.channel.connection.channel()
        channel.basic_qos(prefetch_count=prefetch)
        sure = sum(not entry.expires for entry in self.ready()[:prefetch])
        taken = Taken(channel, self.name)
        taken.wait(sure)
        channel.basic_cancel(taken.tag)  # gives back what came meanwhile
        entries = []
        for method, body in taken.messages:
            entries.append(self._took(body, method.redelivered))
            entries[-1].tag = method.delivery_tag
        if end != "give back" and entries:
            act = channel.basic_ack if end == "ack" else channel.basic_nack
            options = {} if end == "ack" else {"requeue": False}
            act(taken.messages[-1][0].delivery_tag, multiple=True, **options)
            for entry in entries:
                self._settled(entry)
        channel.close()
        for entry in entries:
            entry.tag = None

    @rule(
        places=st.lists(st.integers(0, 40), min_size=1),
        how=st.sampled_from(["ack", "discard", "requeue", "requeue"]),
    )
    def settle(self, places: list[int], how: str) -> None:
        """What is held depends on what has expired: the places are drawn without a look at it."""
        held = [entry for entry in self.entries if entry.tag is not None]
        for place in dict.fromkeys(place % len(held) for place in places if held):
            entry = held[place]
            assert entry.tag is not None
            if how == "ack":
                self.channel.basic_ack(entry.tag)
            else:
                self.channel.basic_nack(entry.tag, requeue=how == "requeue")
            if how == "requeue":
                entry.tag = None
            else:
                self._settled(entry)
        self._count()

    @rule()
    def recover(self) -> None:
        self.channel.basic_recover(requeue=True)
        for entry in self.entries:
            entry.tag = None

    @rule()
    def purge(self) -> None:
        ready = self.ready()
        count = self.channel.queue_purge(self.name).method.message_count
        assert sum(not entry.expires for entry in ready) <= count <= len(ready)
        for entry in ready:
            self._settled(entry)

    # -- the operator -----------------------------------------------------------------------------------------------

    @rule(key=st.sampled_from(["queue-mode", "queue-version"]), at=st.integers(0, 1))
    def switch(self, key: str, at: int) -> None:
        values: dict[str, tuple[object, ...]] = {
            "queue-mode": ("default", "lazy"),
            "queue-version": self.versions,
        }
        self.set_policy(key, values[key][at % len(values[key])])
        ready = self.ready()
        assert sum(not entry.expires for entry in ready) <= self._count() <= len(ready)

    def set_policy(self, key: str, value: object) -> None:
        self.policy[key] = value
        body = {"pattern": f"^{self.name}$", "definition": self.policy, "apply-to": "queues"}
        assert self.client.api("PUT", f"/api/policies/%2F/{self.name}", body).status in {201, 204}

    # -- the node ---------------------------------------------------------------------------------------------------

    @precondition(lambda self: self.restarts < 1)
    @rule(is_clean=st.booleans())
    def restart(self, is_clean: bool) -> None:
        self.restarts += 1
        if is_clean:
            self.client.close()
            assert self.node.stop() == 0
        else:
            self.node.kill()
            self.client.close()
        self.node.start()
        self._connect()
        survivors = [entry for entry in self.entries if entry.persistent]
        found: list[int] = []
        while (answer := self.channel.basic_get(self.name))[0] is not None:
            found.append(int(answer[2].split(b" ")[0]))
        assert found == sorted(set(found)), "order or duplicates"
        sure = is_clean
        must = {e.number for e in survivors if (sure or e.confirmed) and not e.expires}
        may = {e.number for e in survivors}
        if not is_clean:
            may |= self.acked
        assert must <= set(found) <= may, (sorted(must - set(found)), sorted(set(found) - may))
        self.channel.basic_recover(requeue=True)
        known = {entry.number: entry for entry in survivors}
        self.entries = [
            known.get(number) or Entry(number, True, True, expires=True) for number in found
        ]
        for entry in self.entries:
            entry.tag, entry.seen = None, True
            self.acked.discard(entry.number)

    def teardown(self) -> None:
        """Whatever happened, what is there is what must be there, in order."""
        if not hasattr(self, "channel"):
            return
        try:
            while self._get(auto_ack=True) is not None:
                pass
        finally:
            self.channel.queue_delete(self.name)
            self.client.api("DELETE", f"/api/policies/%2F/{self.name}")
            self.client.close()


def check(node: BrokerProcess, examples: int, steps: int) -> None:
    """Run so many examples on the node."""
    machine: Callable[[], Any] = type("Machine", (LiveQueue,), {"node": node})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            phases=[
                Phase.generate
            ],  # a live node does not fail twice in the same way: the steps are printed
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.fixture
def node(tmp_path: Path) -> Any:
    node = BrokerProcess(tmp_path / "data")
    node.start()
    yield node
    if node.is_alive:
        eventually(lambda: node.stop() == 0)
        assert "Traceback" not in node.log_path.read_text()
    node.kill()


@pytest.mark.timeout(300)
def test_a_queue_equals_the_model(node: BrokerProcess) -> None:
    check(node, examples=4, steps=30)


@pytest.mark.long
def test_a_queue_equals_the_model_in_five_hundred_runs(node: BrokerProcess) -> None:
    check(node, examples=400, steps=50)
