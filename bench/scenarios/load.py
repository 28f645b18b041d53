"""Throughput and latency with the native generator: the rows where the broker, not the client, has to be the limit.

Owns no state. Transient rows run with `classic_queue.default_mode = cached`, RabbitMQ 3.10's behaviour; RabbitMQ gets smaller
counts because it would need minutes for ours. Rates are compared, not durations.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bench import native, procfs
from bench.peers import PEERS, Node, Setting
from bench.scenarios.base import EVERYBODY, Figure, Outcome, Scenario, measure_load
from bench.stage import Stage

QUICK_DIVISOR = 3
# Options that say which queues and exchanges there are.
SHAPE = ("queues", "fanout", "topic", "headers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """`fast`, `interpreted`, `reference`: messages of a full run: ours and LavinMQ's, interpreted, RabbitMQ's."""

    key: str
    title: str
    fast: int
    interpreted: int
    reference: int
    options: dict[str, native.Option]
    setting: Setting = field(default_factory=Setting)
    peers: tuple[str, ...] = EVERYBODY
    idle_connections: int = 0
    is_full_only: bool = False

    def messages(self, stage: Stage, peer: str) -> int:
        slower = {"burrowmq-pure": self.interpreted, "rabbitmq": self.reference}
        count = slower.get(peer, self.fast)
        return stage.scaled(count, count // QUICK_DIVISOR) * stage.longer

    def run(self, stage: Stage, peer: str) -> Outcome:
        node = stage.pooled(peer, self.setting)
        options = {**self.options, "messages": self.messages(stage, peer), "timeout": 300}
        with _idle_connections(node, self.idle_connections):
            outcome = measure_load(node, options)
        shape = {name: self.options.get(name, False) for name in SHAPE}
        native.run(node.port, mode="delete", **{k: v for k, v in shape.items() if v})
        procfs.wait_idle(node.pid)
        queue_mode = "lazy" if self.options.get("lazy") else self.setting.default_mode
        mode = f"{queue_mode}, {PEERS[peer].durability(self.setting)}"
        return Outcome(outcome.values, mode, outcome.limit)

    def scenario(self) -> Scenario:
        return Scenario(
            key=self.key,
            title=self.title,
            run=self.run,
            peers=self.peers,
            is_full_only=self.is_full_only,
        )


@contextmanager
def _idle_connections(node: Node, count: int) -> Iterator[None]:
    if not count:
        yield
        return
    held = native.StagedRun(node.port, mode="idle", connections=count, timeout=300)
    try:
        held.await_stage()
        yield
        held.finish()
    finally:
        held.abandon()


PERSISTENT: dict[str, native.Option] = {"durable": True, "persistent": True}
BOUNDED = Setting(default_mode="bounded")

_LOADS = (
    Load(
        key="publish-16",
        title="publish-only 16 B",
        fast=4_000_000,
        interpreted=2_000_000,
        reference=200_000,
        options={"size": 16},
    ),
    Load(
        key="publish-1k",
        title="publish-only 1 KB",
        fast=600_000,
        interpreted=400_000,
        reference=80_000,
        options={"size": 1024},
    ),
    Load(
        key="publish-16-bounded",
        title="publish-only 16 B, `bounded` (goes to disk)",
        fast=2_000_000,
        interpreted=1_000_000,
        reference=200_000,
        options={"size": 16},
        setting=BOUNDED,
    ),
    Load(
        key="1p1c-16",
        title="1 producer 1 consumer, auto-ack, 16 B",
        fast=4_000_000,
        interpreted=1_500_000,
        reference=200_000,
        options={"size": 16, "consumers": 1, "verify": True},
    ),
    Load(
        key="1p1c-varying",
        title="the same, headers and sizes varying (32-96 B, message-id)",
        fast=3_000_000,
        interpreted=600_000,
        reference=200_000,
        options={"size": 32, "vary": True, "consumers": 1, "verify": True},
    ),
    Load(
        key="confirms-1k",
        title="confirms (window 500) + single acks, persistent 1 KB",
        fast=400_000,
        interpreted=300_000,
        reference=50_000,
        options={
            **PERSISTENT,
            "size": 1024,
            "confirm": 500,
            "consumers": 1,
            "prefetch": 500,
            "verify": True,
        },
    ),
    Load(
        key="fanout-5",
        title="fan-out 1 → 5 queues → 5 consumers, 16 B",
        fast=1_000_000,
        interpreted=400_000,
        reference=40_000,
        options={"size": 16, "queues": 5, "fanout": True, "consumers": 1, "verify": True},
    ),
    Load(
        key="lazy-1000",
        title="lazy, persistent, 1,000,000 x 1000 B, no consumer",
        fast=1_000_000,
        interpreted=1_000_000,
        reference=300_000,
        options={**PERSISTENT, "size": 1000, "lazy": True},
    ),
    Load(
        key="unbatched-16",
        title="1 producer 1 consumer, 16 B, one write per message",
        fast=1_000_000,
        interpreted=600_000,
        reference=150_000,
        options={"size": 16, "batch": 0, "consumers": 1, "verify": True},
    ),
    Load(
        key="confirms-1k-multiple",
        title="confirms (window 500), persistent 1 KB, ack every 100 messages",
        fast=400_000,
        interpreted=300_000,
        reference=50_000,
        options={
            **PERSISTENT,
            "size": 1024,
            "confirm": 500,
            "consumers": 1,
            "prefetch": 500,
            "ack_every": 100,
            "verify": True,
        },
        is_full_only=True,
    ),
    Load(
        key="idle-500",
        title="500 idle connections beside 1 producer 1 consumer, 16 B",
        fast=4_000_000,
        interpreted=1_500_000,
        reference=200_000,
        options={"size": 16, "consumers": 1, "verify": True},
        idle_connections=500,
        is_full_only=True,
    ),
    Load(
        key="many-50",
        title="50 producers 50 consumers on 10 queues, one write per message, 16 B",
        fast=1_000_000,
        interpreted=500_000,
        reference=60_000,
        options={"size": 16, "batch": 0, "queues": 10, "producers": 50, "consumers": 5},
        is_full_only=True,
    ),
    Load(
        key="latency-5k",
        title="latency at 5,000 msg/s, 16 B, one write per message",
        fast=25_000,
        interpreted=25_000,
        reference=25_000,
        options={"size": 16, "batch": 0, "rate": 5000, "latency": True, "consumers": 1},
        is_full_only=True,
    ),
    Load(
        key="latency-20k",
        title="latency at 20,000 msg/s, 16 B, one write per message",
        fast=100_000,
        interpreted=100_000,
        reference=100_000,
        options={"size": 16, "batch": 0, "rate": 20000, "latency": True, "consumers": 1},
    ),
)

SCENARIOS = tuple(load.scenario() for load in _LOADS)

# scenario, must, reach: ratios to RabbitMQ
_RATIOS: tuple[tuple[str, float, float | None], ...] = (
    ("publish-16", 20, 40),
    ("publish-1k", 6, 12),
    ("publish-16-bounded", 4, 10),
    ("1p1c-16", 15, 40),
    ("1p1c-varying", 10, 20),
    ("confirms-1k", 5, 10),
    ("fanout-5", 15, 40),
    ("lazy-1000", 4, 8),
)
_TITLES = {load.key: load.title for load in _LOADS}
FIGURES = (
    *(
        Figure(title=_TITLES[key], scenario=key, relative_to="rabbitmq", must=must, reach=reach)
        for key, must, reach in _RATIOS
    ),
    Figure(
        title="interpreted codec, constant headers (1P1C 16 B)",
        scenario="1p1c-16",
        peer="burrowmq-pure",
        relative_to="rabbitmq",
        must=3,
    ),
    Figure(
        title="interpreted codec, varying headers (1P1C 32-96 B)",
        scenario="1p1c-varying",
        peer="burrowmq-pure",
        relative_to="rabbitmq",
        must=2,
    ),
    Figure(
        title="latency at 20,000 msg/s, p50 (as a part of RabbitMQ's)",
        scenario="latency-20k",
        value="p50_us",
        relative_to="rabbitmq",
        must=0.5,
        is_at_most=True,
    ),
)
