"""Definitions that the servers refuse: one that is larger than they take, and those that the account may not write.

Covers: broker/replicated/agreed.py, broker/replicated/front_end.py, broker/replicated/watching.py
"""

from __future__ import annotations

from typing import Any

import pytest
from pika import spec

from burrowmq.protocol.errors import AmqpError, PreconditionFailed
from tests.support.cluster_bench import ClusterBench
from tests.support.front_ends_bench import FrontEnds, declare_exchange, say

LARGE = "x" * 1_300_000
KEY = '["global","big"]'
TOLD = f"larger than the servers take: parameter {KEY}: "


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> FrontEnds:
    return FrontEnds(monkeypatch)


def put(bench: ClusterBench, value: Any, name: str = "big") -> list[AmqpError | None]:
    """What is told to who waits for it."""
    told: list[AmqpError | None] = []

    def step() -> None:
        share = bench.replication.share
        assert share is not None
        bench.parameters.put(name, value)
        share.when_agreed(told.append)

    bench.perform(step)
    return told


def stored(name: str, value: Any) -> tuple[str, str, Any]:
    """The row of a global parameter of an earlier life."""
    row = {"name": name, "value": value, "is_global": True}
    return "parameter", f'["global","{name}"]', row


def values(bench: ClusterBench) -> dict[str, Any]:
    return bench.parameters.values


def not_shared(bench: ClusterBench) -> list[Any]:
    return bench.observer.named("definition_not_shared")


def test_one_that_is_too_large_is_refused_at_once_and_taken_back(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    told = put(one, LARGE)
    ends.settle(0.2)
    (error,) = told
    assert isinstance(error, PreconditionFailed)
    assert error.text.startswith(TOLD)
    assert error.text.endswith(" octets, and the servers take 1048576")
    assert "big" not in values(one)
    assert not [row for row in ends.rows(one) if row[1] == KEY]
    assert ends.world.end_count == 0, "the connection stays"
    ((kind, key, reason),) = not_shared(one)
    assert (kind, key, reason) == ("parameter", KEY, error.text)
    put(one, "small")
    ends.settle(0.2)
    assert values(two)["big"] == "small"
    put(one, LARGE)
    ends.settle(0.2)
    assert values(one)["big"] == values(two)["big"] == "small"


def test_who_asks_later_is_told_too(ends: FrontEnds) -> None:
    one = ends.start()
    one.perform(lambda: one.parameters.put("big", LARGE))
    ends.settle(0.2)
    assert "big" in values(one), "an import goes on, and asks at its end"
    told = put(one, 1, "small")
    ends.settle(0.2)
    (error,) = told
    assert isinstance(error, PreconditionFailed)
    assert "big" not in values(one)
    assert values(one)["small"] == 1
    one.perform(lambda: one.parameters.put("big", LARGE))
    ends.settle(7.0)
    assert "big" not in values(one), "nobody has asked"


def test_one_that_was_here_before_stays_here_alone(ends: FrontEnds) -> None:
    ends.start()
    alone = stored("big", LARGE)
    small = stored("small", 1)
    one = ends.start([alone, small])
    ends.settle(12.0)
    share = one.replication.share
    assert share is not None
    assert ends.world.end_count == 0, "the connection stays"
    assert share.rows.pending_count == 0
    assert len(not_shared(one)) == 1
    ((kind, key, reason),) = share.rows.own
    assert (kind, key) == ("parameter", KEY)
    assert reason.startswith(TOLD)
    assert ends.benches[0].parameters.values["small"] == 1
    assert "big" not in ends.benches[0].parameters.values

    again = ends.start([*ends.rows(one), alone])
    ends.settle(2.0)
    assert values(again)["big"] == LARGE, "nobody has removed it"
    again.own_link.lose()
    again.own_link.open()
    ends.settle(2.0)
    assert values(again)["big"] == LARGE
    assert len(not_shared(again)) == 1, "told once"

    ends.world.payload_max = 8 << 20
    again.own_link.lose()
    again.own_link.open()
    ends.settle(1.0)
    assert ends.benches[0].parameters.values["big"] == LARGE
    assert again.replication.share is not None
    assert again.replication.share.rows.own == []


def test_what_stays_here_alone_is_changed_and_removed(ends: FrontEnds) -> None:
    ends.start()
    alone = stored("big", LARGE)
    one = ends.start([alone])
    ends.settle(1.0)
    told = put(one, LARGE + "x")
    ends.settle(0.2)
    assert isinstance(told[0], PreconditionFailed)
    assert values(one)["big"] == LARGE
    one.perform(lambda: one.parameters.remove("big"))
    ends.settle(0.2)
    assert not [row for row in ends.rows(one) if row[1] == KEY]
    share = one.replication.share
    assert share is not None
    assert share.rows.own == []
    assert share.rows.pending_count == 0


def test_a_client_is_told_at_once_what_the_account_may_not(ends: FrontEnds) -> None:
    one = ends.start()
    ends.world.denied = "$KV."
    client = one.connect(1)
    declare_exchange(client)
    ends.settle(0.2)
    ((_, close),) = client.read()
    assert close.reply_code == 541
    assert 'Permissions Violation for Publish to "$KV.burrowmq.exchange.' in close.reply_text
    (text,) = one.observer.named("cluster_refuses")[0]
    assert text.startswith('Permissions Violation for Publish to "$KV.burrowmq.exchange.')
    declare_exchange(one.connect(1), "y")
    ends.settle(0.2)
    assert len(one.observer.named("cluster_refuses")) == 1
    assert not_shared(one) == []


def test_an_account_that_may_not_read_them_is_told_of_at_once(ends: FrontEnds) -> None:
    ends.world.denied = "$JS.API.STREAM.CREATE."
    one = ends.start()
    client = one.connect(1)
    declare_exchange(client)
    ends.settle(0.2)
    ((_, close),) = client.read()
    assert close.reply_code == 541
    assert "Permissions Violation" in close.reply_text
    ends.world.denied = ""
    ends.settle(6.0)
    client = one.connect(1)
    declare_exchange(client)
    ends.settle(0.2)
    assert client.names() == ["Exchange.DeclareOk"]


def test_offers_that_the_account_may_not_write_wait_until_it_may(ends: FrontEnds) -> None:
    first = ends.start()
    small = stored("small", 1)
    ends.world.denied = "$KV."
    one = ends.start([small])
    ends.settle(7.0)
    assert values(one)["small"] == 1
    ends.world.denied = ""
    ends.settle(6.0)
    assert values(first)["small"] == 1


@pytest.mark.parametrize(("limit_s", "is_denied"), [(0.2, True), (7.0, False)])
def test_who_asks_while_offers_wait_is_told_that_they_do(
    ends: FrontEnds, monkeypatch: pytest.MonkeyPatch, limit_s: float, *, is_denied: bool
) -> None:
    """They may wait for days: each client that declares what there is would hold its channel, and be held, as long."""
    ends.start()
    put = ends.bucket.put
    if is_denied:
        ends.world.denied = "$KV."
    else:
        error = {"code": 503, "err_code": 10008, "description": "not now"}
        monkeypatch.setattr(ends.bucket, "put", lambda *_: {"error": error})
    one = ends.start([stored("small", 1)])
    assert one.replication.share is not None
    rows = one.replication.share.rows
    for _ in range(3):
        client = one.connect(1)
        say(client, spec.Exchange.Declare(exchange="amq.topic", type="topic", durable=True))
        ends.settle(limit_s)
        ((_, close),) = client.read()
        assert close.reply_code == 541
    assert [len(row.waiting) for row in rows._pending] == [0]
    ends.world.denied = ""
    monkeypatch.setattr(ends.bucket, "put", put)
    ends.settle(6.0)
    assert rows.pending_count == 0
    client = one.connect(1)
    say(client, spec.Exchange.Declare(exchange="amq.topic", type="topic", durable=True))
    ends.settle(0.2)
    assert client.names() == ["Exchange.DeclareOk"]


def test_a_queue_that_the_account_may_not_make_is_refused_at_once(ends: FrontEnds) -> None:
    one = ends.start()
    ends.world.denied = "$JS.API.STREAM.CREATE.Q_"
    client = one.connect(1)
    arguments = {"x-queue-type": "quorum"}
    say(client, spec.Queue.Declare(queue="q", durable=True, arguments=arguments))
    ends.settle(0.2)
    ((_, close),) = client.read()
    assert close.reply_code == 404
    text = 'is inaccessible: Permissions Violation for Publish to "$JS.API.STREAM.CREATE.Q_'
    assert text in close.reply_text
    state = one.front_end.state
    assert state.refusals[0].startswith("Permissions Violation")
    ends.settle(20.0)
    assert len(one.observer.named("cluster_refuses")) == 1, "once"
    ends.world.denied = ""
    ends.settle(6.0)
    assert "q" in one.vhost.queues
    ends.settle(60.0)
    assert one.front_end.state.refusals == ()


def test_a_change_that_meets_another_in_the_servers_is_made_of_what_that_has_made(
    ends: FrontEnds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one of a row is being stored the servers say no number: there is none yet."""
    one, two = ends.start(), ends.start()
    put(two, "theirs")
    take = ends.bucket.put

    def busy(*_: object) -> dict[str, object]:
        monkeypatch.setattr(ends.bucket, "put", take)
        return {"error": {"code": 400, "err_code": 10164, "description": "wrong last sequence"}}

    ends.settle(0.2)
    monkeypatch.setattr(ends.bucket, "put", busy)
    told = put(one, "ours")
    ends.settle(2.0)
    assert told == [None]
    assert values(one)["big"] == values(two)["big"] == "ours"
    assert not_shared(one) == []
