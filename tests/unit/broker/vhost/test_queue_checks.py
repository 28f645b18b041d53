"""burrowmq.broker.vhost.queue_checks: in which words a declaration is refused, and which one means what is there."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.vhost.queue_checks import check_new
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.protocol.errors import PreconditionFailed
from tests.support.bench.broker import BrokerBench

FULL = {"x-max-length": 3}


def refused(vhost: Vhost, **more: Any) -> str:
    """Why "q" cannot be declared like this; "" if it is there like this, or could be."""
    try:
        vhost.declare_queue(QueueDeclaration(name="q", **more))
    except PreconditionFailed as error:
        return error.text
    return ""


@pytest.mark.parametrize("kind", ["quorum", "stream"])
def test_the_clusters_kinds_are_no_kinds_without_one(kind: str) -> None:
    said = refused(BrokerBench().vhost, durable=True, arguments={"x-queue-type": kind})
    assert said.startswith("invalid arg 'x-queue-type' for queue 'q' in vhost '/'")


def test_each_field_that_differs_is_said_with_both_values() -> None:
    vhost = BrokerBench().vhost
    vhost.declare_queue(QueueDeclaration(name="q", durable=True, arguments=FULL))
    assert refused(vhost, durable=True, arguments=dict(FULL)) == ""
    for more, said in (
        ({"arguments": FULL}, "inequivalent arg 'durable' for queue 'q' in vhost '/': received 'false' but current is 'true'"),
        ({"durable": True, "auto_delete": True, "arguments": FULL}, "inequivalent arg 'auto_delete'"),
        ({"durable": True}, "inequivalent arg 'x-max-length' for queue 'q' in vhost '/': received none but current is the value '3'"),
    ):  # fmt: skip
        assert refused(vhost, **more).startswith(said)


def test_a_queue_that_took_anothers_place_is_meant_by_what_declared_either() -> None:
    vhost = BrokerBench().vhost
    vhost.declare_queue(QueueDeclaration(name="q", durable=True, arguments=FULL))
    vhost.former_arguments["q"] = {"x-max-priority": 5}
    assert refused(vhost, durable=True, arguments={"x-max-priority": 5}) == ""
    assert refused(vhost, durable=True, arguments=FULL) == ""
    assert "x-max-length" in refused(vhost, durable=True, arguments={"x-max-priority": 6})
    assert "'durable'" in refused(vhost, arguments={"x-max-priority": 5})


@pytest.mark.parametrize(("count", "limit"), [(2, 2), (3, 2), (0, 0)])
def test_a_vhost_that_is_full_takes_no_more(count: int, limit: int) -> None:
    declaration = QueueDeclaration(name="q")
    with pytest.raises(PreconditionFailed) as caught:
        check_new(declaration, "v", has_cluster=True, count=count, limit=limit)
    said = f"cannot declare queue 'q': queue limit in vhost 'v' ({limit}) is reached"
    assert caught.value.text == said
    check_new(declaration, "v", has_cluster=True, count=count, limit=-1)
    check_new(declaration, "v", has_cluster=True, count=count, limit=count + 1)
