"""The engine against a model of dicts, over any sequence of operations, stops, crashes and compactions.

One queue is of version 2, one of version 1, one changes between them on the way: all three deliver what the model does.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.simulation.store_world import OPTIONS, Entry, ModelQueue, World, make_message

NAMES = ("a", "b", "c")
VERSIONS = {"a": 2, "b": 1, "c": 2}


class EngineModel(RuleBasedStateMachine):
    """Each rule does the same to the engine and to the model; reading must give the model's messages."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(0, strict=True, options=OPTIONS)
        for name in NAMES:
            self.world.engine.definitions.put("queue", name, {"id": ord(name)})
            version = VERSIONS[name]
            log = self.world.engine.open_queue("/", name, durable=True, version=version)
            self.world.queues[name] = ModelQueue(
                name, True, self.world.engine.epoch, log, identity=ord(name), version=version
            )
        self.world.sync()

    def queue(self, name: str) -> ModelQueue:
        return self.world.queues[name]

    @rule(
        names=st.sets(st.sampled_from(NAMES), min_size=1),
        sizes=st.lists(st.sampled_from((1, 60, 118, 119, 120, 400, 1500)), min_size=1, max_size=20),
        persistent=st.booleans(),
        expiry=st.sampled_from((0, 5)),
        gap=st.sampled_from((0, 0, 0, 3)),
    )
    def publish(
        self, names: set[str], sizes: list[int], persistent: bool, expiry: int, gap: int
    ) -> None:
        world = self.world
        messages = []
        for size in sizes:
            world.number += 1
            messages.append(make_message(world.number, size, persistent))
        expiries = [expiry] * len(messages) if expiry else None
        for name in names:
            queue = self.queue(name)
            queue.next_seq += gap
            queue.log.append(queue.next_seq, list(messages), expiries, sum(sizes))
            for message in messages:
                queue.entries[queue.next_seq] = Entry(
                    message, message.raw, expiry, world.engine.epoch
                )
                queue.next_seq += 1

    @rule(name=st.sampled_from(NAMES), data=st.data(), given=st.booleans())
    def ack_range(self, name: str, data: st.DataObject, given: bool) -> None:
        queue = self.queue(name)
        live = queue.live()
        if not live:
            return
        first = data.draw(st.sampled_from(live))
        last = first
        while last + 1 in live and last - first < 12:
            last += 1
        messages = [queue.entries[seq].message for seq in range(first, last + 1)] if given else None
        queue.log.ack(first, last, messages)
        for seq in range(first, last + 1):
            queue.entries[seq].ack_epoch = self.world.engine.epoch

    @rule(name=st.sampled_from(NAMES), data=st.data())
    def ack_some(self, name: str, data: st.DataObject) -> None:
        queue = self.queue(name)
        live = queue.live()
        if not live:
            return
        seqs = data.draw(st.lists(st.sampled_from(live), min_size=1, unique=True))
        queue.log.ack_many(seqs)
        for seq in seqs:
            queue.entries[seq].ack_epoch = self.world.engine.epoch

    @rule(name=st.sampled_from(NAMES), part=st.floats(0, 1))
    def purge(self, name: str, part: float) -> None:
        queue = self.queue(name)
        below = int(queue.next_seq * part)
        queue.log.ack(0, below - 1)
        for seq in queue.live():
            if seq < below:
                queue.entries[seq].ack_epoch = self.world.engine.epoch

    @rule(version=st.sampled_from((1, 2)))
    def convert(self, version: int) -> None:
        queue = self.queue("c")
        queue.version = version
        queue.log.set_version(version)

    @rule(is_sync=st.booleans())
    def hand_over(self, is_sync: bool) -> None:
        if is_sync:
            self.world.sync()
        else:
            self.world.engine.hand_over()

    @rule()
    def idle(self) -> None:
        self.world.idle()

    @rule()
    def restart(self) -> None:
        self.world.restart()

    @precondition(lambda self: self.world.engine.epoch > 1)
    @rule(is_power=st.booleans(), seed=st.integers(0, 1000))
    def crash(self, is_power: bool, seed: int) -> None:
        self.world.rng.seed(seed)
        self.world.crash(is_power=is_power)

    @invariant()
    def reading_gives_what_is_live(self) -> None:
        for _ in NAMES:
            self.world.read_back()


TestEngineModel = EngineModel.TestCase
TestEngineModel.settings = settings(
    max_examples=40,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
