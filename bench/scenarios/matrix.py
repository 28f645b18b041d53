"""The matrix: what a message costs when it is not like the one before, waits for somebody, or is large.

Owns no state. Rows are tables: what is run, and how many times less CPU a message must cost than RabbitMQ's and LavinMQ's.
Where nothing was to be gained, the must is four fifths of what the row had, since a fifth is a tie on a shared machine.
"""

from typing import NamedTuple

from bench import native
from bench.peers import Setting
from bench.scenarios.base import Figure
from bench.scenarios.load import BOUNDED, PERSISTENT, Load

Options = dict[str, native.Option]
_CACHED = Setting()
_FILES = Setting(commit_log="off")
_TLS = Setting(is_tls=True)


class Row(NamedTuple):
    """A row, and what it has to reach.

    `ours`, `interpreted` and `reference` are messages of a full run; `must` and `reach` RabbitMQ's CPU a message as
    multiples of ours; `lavinmq` is LavinMQ's.
    """

    key: str
    title: str
    ours: int
    reference: int
    must: float
    reach: float | None
    lavinmq: float | None
    options: Options
    setting: Setting = _CACHED
    is_quick: bool = False
    interpreted: int = 0

    def load(self) -> Load:
        return Load(
            key=self.key,
            title=self.title,
            fast=self.ours,
            interpreted=self.interpreted or max(self.ours // 4, self.reference),
            reference=self.reference,
            options={"size": 16, **self.options},
            setting=self.setting,
            is_full_only=not self.is_quick,
        )


_1P1C: Options = {"consumers": 1}
_IN_ORDER: Options = {**_1P1C, "verify": True}
_TEN: Options = {**_IN_ORDER, "queues": 10}
_TOPIC: Options = {**_TEN, "topic": True}

_KEYS = (
    Row("keys-10", "keys over 10 queues, 10 connections", 1_000_000, 100_000, 40, 90, 5,
        {**_TEN, "spread": True}, is_quick=True),
    Row("keys-100", "100 queues, 100 connections", 1_000_000, 60_000, 40, 90, 5,
        {**_IN_ORDER, "queues": 100, "spread": True}),
    Row("keys-100-one", "100 queues, one consumer connection", 1_000_000, 60_000, 30, None, 5,
        {**_IN_ORDER, "queues": 100, "spread": True, "one_channel": True}),
    Row("topic-1k", "topic, 1,000 keys", 1_000_000, 60_000, 30, 70, 3, {**_TOPIC, "keys": 1000}, is_quick=True),
    Row("topic-100k", "topic, 100,000 keys", 1_000_000, 60_000, 30, 70, 3, {**_TOPIC, "keys": 100_000}),
    Row("topic-new", "topic, every key new", 1_000_000, 60_000, 8, 20, 0.7, {**_TOPIC, "keys": 1 << 60}),
    Row("topic-bindings", "topic, 10,000 bindings, 1,000 keys", 1_000_000, 60_000, 60, 180, 100,
        {**_TOPIC, "keys": 1000, "bindings": 10_000}),
    Row("headers-10", "headers exchange, 10 bindings", 1_000_000, 60_000, 8, 30, 1.5, {**_TEN, "headers": True}),
    Row("fanout-100", "fan-out 1 → 100 queues → 100 consumers (per delivery)", 100_000, 2_000, 300, None, 33,
        {**_IN_ORDER, "queues": 100, "fanout": True}, interpreted=20_000),
)  # fmt: skip

_PROPERTIES = (
    Row("priority", "priority queue, 10 priorities in turn", 1_000_000, 60_000, 12, 40, 1.2,
        {**_1P1C, "priorities": 10}),
    Row("expiration", "expiration per message", 1_000_000, 100_000, 50, 100, 8,
        {**_IN_ORDER, "expiration": "60000"}),
    Row("reply-to", "reply_to in each message", 1_000_000, 100_000, 50, 100, 8,
        {**_IN_ORDER, "reply_to": "replies"}),
    Row("message-ttl", "queue with x-message-ttl", 2_000_000, 100_000, 100, None, 12,
        {**_IN_ORDER, "message_ttl": 60_000}),
    Row("max-length", "publish-only, x-max-length 1,000 reached", 2_000_000, 100_000, 24, None, 1.6,
        {"max_length": 1000}),
    Row("dead-letter", "reject → dead-letter exchange → consume (prefetch 100)", 200_000, 60_000, 8, 15, 2,
        {**_1P1C, "queues": 2, "dead_letter": True, "prefetch": 100}),
    Row("requeue", "each message given back once (prefetch 100)", 200_000, 60_000, 4, 6, 1,
        {**_1P1C, "requeue": True, "prefetch": 100}),
    Row("cc", "CC header to a second queue (per delivery)", 500_000, 60_000, 8, 20, 1,
        {**_IN_ORDER, "queues": 2, "cc": True}),
    Row("transactions", "transactions of 100", 200_000, 60_000, 8, 25, 1.5,
        {**_IN_ORDER, "transaction": 100}),
    Row("transactions-persistent", "transactions of 100, persistent", 200_000, 40_000, 8, 25, 1.5,
        {**_IN_ORDER, **PERSISTENT, "transaction": 100}),
)  # fmt: skip

# A long queue is one whose publisher is not held back: it spills to disk, as a queue does by default.
_SHORT = 200
# What counts here is CPU; to poll while others would sleep is paid for with it.
_ASLEEP = Setting(default_mode="bounded", busy_wait="off")
_CALLED = Setting(busy_wait="off")
_TURNS = (
    Row("consumers-100", "100 consumers on one queue, single acks (prefetch 10)", 200_000, 40_000, 10, 20, 1,
        {"consumers": 100, "prefetch": 10}),
    Row("get-long", "basic.get from 4 connections, long queue", 60_000, 40_000, 1.7, 2.5, 0.6,
        {"consumers": 4, "get": True}, _ASLEEP, interpreted=60_000),
    Row("get", "basic.get from 4 connections, short queue", 60_000, 40_000, 1.7, 2.5, 0.6,
        {"consumers": 4, "get": True, "ahead": _SHORT}, _ASLEEP, interpreted=60_000),
    Row("rpc", "request and reply, one caller", 40_000, 30_000, 1.7, 2.5, 0.6,
        {**_1P1C, "rpc": True}, _CALLED, interpreted=40_000),
    Row("rpc-20", "request and reply, 20 callers", 100_000, 60_000, 1.7, 2.5, 0.6,
        {**_1P1C, "rpc": True, "producers": 20}, _CALLED, interpreted=100_000),
    Row("prefetch-1-long", "prefetch 1, long queue", 60_000, 40_000, 1.7, 2.5, 0.6,
        {**_IN_ORDER, "prefetch": 1}, _ASLEEP, interpreted=60_000),
    Row("prefetch-1", "prefetch 1, short queue", 60_000, 40_000, 1.7, 2.5, 0.6,
        {**_IN_ORDER, "prefetch": 1, "ahead": _SHORT}, _ASLEEP, interpreted=60_000),
    Row("prefetch-10-long", "prefetch 10, single acks, long queue", 200_000, 60_000, 5, 8, 1,
        {**_IN_ORDER, "prefetch": 10}, _ASLEEP),
    Row("prefetch-10", "prefetch 10, single acks, short queue", 200_000, 60_000, 10, 12, 1.5,
        {**_IN_ORDER, "prefetch": 10, "ahead": _SHORT}, _ASLEEP),
    Row("prefetch-100", "prefetch 100, single acks", 500_000, 60_000, 8, None, 1,
        {**_IN_ORDER, "prefetch": 100}, _ASLEEP),
    Row("acks-10-queues", "one channel, 10 queues, single acks (prefetch 100)", 1_000_000, 60_000, 8, 20, 0.9,
        {**_TEN, "spread": True, "one_channel": True, "prefetch": 100}),
    Row("connections-1000", "1,000 connections, 10 messages a second each", 100_000, 100_000, 1.7, 2.5, None,
        {**_1P1C, "producers": 1000, "rate": 10, "batch": 0}, interpreted=100_000),
)  # fmt: skip

_LARGE = (
    Row("64k-long", "64 KB, long queue", 9_000, 9_000, 1.5, 3, 2, {**_IN_ORDER, "size": 65_536}, BOUNDED),
    Row("64k", "64 KB, short queue", 9_000, 9_000, 1.5, 3, 2,
        {**_IN_ORDER, "size": 65_536, "ahead": 40}, BOUNDED),
    Row("1m-long", "1 MB, long queue", 900, 900, 1, 1.5, 2, {**_IN_ORDER, "size": 1 << 20}, BOUNDED),
    Row("1m", "1 MB, short queue", 900, 900, 1, 1.5, 2, {**_IN_ORDER, "size": 1 << 20, "ahead": 8}, BOUNDED),
    Row("16m", "16 MB", 60, 60, 1, 1.5, 2, {**_IN_ORDER, "size": 1 << 24, "ahead": 2}, BOUNDED),
)  # fmt: skip

_CHURN = (
    Row("tls-1k", "TLS, 1 KB", 300_000, 40_000, 5.3, None, 1, {**_IN_ORDER, "size": 1024, "tls": True}, _TLS),
    Row("churn", "a connection with a channel comes and goes", 3000, 2000, 5, 8, 0.5, {"mode": "churn"}),
    Row("churn-tls", "the same with TLS", 1200, 900, 3, None, 1, {"mode": "churn", "tls": True}, _TLS),
    Row("queue-churn", "a transient queue comes and goes", 12_000, 2000, 18, None, 25, {"mode": "queues"}),
    Row("queue-churn-durable", "a durable queue comes and goes", 6000, 2000, 3.2, None, 4.5,
        {"mode": "queues", "durable": True}),
)  # fmt: skip

_REAL = (
    Row("real-topic", "topic, 1,000 keys, persistent, window 100, single acks (prefetch 100)", 120_000, 40_000, 6, 10, None,
        {**_TOPIC, **PERSISTENT, "size": 512, "keys": 1000, "confirm": 100, "prefetch": 100}),
)  # fmt: skip

ROWS: tuple[Row, ...] = (*_KEYS, *_PROPERTIES, *_TURNS, *_LARGE, *_CHURN, *_REAL)


class Waiting(NamedTuple):
    """A row in which each message waits for the disk.

    `must` and `reach` are rates with the commit log, as by default, as multiples of RabbitMQ's, which does not sync.
    """

    key: str
    title: str
    ours: int
    reference: int
    must: float
    reach: float
    options: Options
    is_quick: bool = False

    def load(self, setting: Setting) -> Load:
        has_log = setting != _FILES
        return Load(
            key=self.key if has_log else f"{self.key}-files",
            title=f"{self.title}, persistent 512 B{'' if has_log else ', no commit log'}",
            fast=self.ours,
            interpreted=self.ours,
            reference=self.reference,
            options={**PERSISTENT, "size": 512, **self.options},
            setting=setting,
            is_full_only=not self.is_quick,
        )


_WAITING = (
    Waiting("window-1", "one publisher waits for each confirm", 12_000, 6_000, 1.5, 3, {"confirm": 1}, is_quick=True),
    Waiting("window-10", "one publisher, window 10", 90_000, 24_000, 3, 4.5, {"confirm": 10}),
    Waiting("publishers-50", "50 publishers, window 1", 60_000, 24_000, 3, 6, {"confirm": 1, "producers": 50}),
    # A third is a message of each to each, which the generator wants.
    Waiting("publishers-200", "200 publishers on 200 queues, window 1", 120_000, 120_000, 3, 5,
            {"confirm": 1, "producers": 200, "queues": 200}),
    Waiting("tasks-20", "4 publishers, window 10, to 20 queues with single acks (prefetch 4)", 24_000, 12_000, 3, 6,
            {"confirm": 10, "producers": 4, "queues": 20, "spread": True, "consumers": 1, "prefetch": 4}),
)  # fmt: skip

_LOADS = (
    *(row.load() for row in ROWS),
    *(row.load(setting) for row in _WAITING for setting in (_CACHED, _FILES)),
)
SCENARIOS = tuple(load.scenario() for load in _LOADS)
_TITLES = {load.key: load.title for load in _LOADS} | {"1p1c-16": "same key, 16 B"}


def _cpu(
    key: str, other: str, must: float, reach: float | None = None, peer: str = "burrowmq"
) -> Figure:
    """CPU a message as a part of `other`'s, which has to be `must` times as much."""
    words = ", interpreted" if peer == "burrowmq-pure" else ""
    whose = "RabbitMQ" if other == "rabbitmq" else "LavinMQ"
    return Figure(
        title=f"{_TITLES[key]}{words}: CPU a message (as a part of {whose}'s)",
        scenario=key,
        value="cpu_us",
        peer=peer,
        relative_to=other,
        must=1 / must,
        reach=1 / reach if reach else None,
        is_at_most=True,
    )


def _row_figures(row: Row) -> list[Figure]:
    found = [_cpu(row.key, "rabbitmq", row.must, row.reach)]
    if row.lavinmq:
        found.append(_cpu(row.key, "lavinmq", row.lavinmq))
    return [*found, _cpu(row.key, "rabbitmq", 1, peer="burrowmq-pure")]


# Two rows of one broker: the first may cost so many times what the second does.
_WITHIN = (
    *((key, "1p1c-16", 4.0) for key in ("keys-10", "keys-100", "topic-1k", "topic-100k")),
    ("get-long", "get", 2.0),
    ("prefetch-1-long", "prefetch-1", 2.0),
    ("prefetch-10-long", "prefetch-10", 2.0),
    ("64k-long", "64k", 2.0),
    ("1m-long", "1m", 2.0),
)

FIGURES = (
    _cpu("1p1c-16", "rabbitmq", 112),
    *(figure for row in ROWS for figure in _row_figures(row)),
    *(
        Figure(
            title=f"{_TITLES[key]}: CPU a message (to: {_TITLES[other]})",
            scenario=key,
            value="cpu_us",
            over=other,
            must=must,
            is_at_most=True,
        )
        for key, other, must in _WITHIN
    ),
    *(
        Figure(
            title=_TITLES[row.key],
            scenario=row.key,
            relative_to="rabbitmq",
            must=row.must,
            reach=row.reach,
        )
        for row in _WAITING
    ),
    Figure(
        title=f"{_TITLES['window-1']}: CPU a message",
        scenario="window-1",
        value="cpu_us",
        must=150,
        is_at_most=True,
        unit="µs",
    ),
    _cpu("tasks-20", "rabbitmq", 4),
)
