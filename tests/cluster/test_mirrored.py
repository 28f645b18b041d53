"""Policies of mirroring on three real servers: a client that declares as ever has a quorum queue at both front-ends."""

from __future__ import annotations

import time

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

from tests.support.front_ends import PERSISTENT, Nodes, until_agreed
from tests.support.patience import patient

HA = '{"ha-mode":"exactly","ha-params":2,"message-ttl":600000}'


def declare(channel: BlockingChannel, name: str, **arguments: object) -> BlockingChannel:
    """Declare it as clients of mirrored queues do; the channel on which that succeeds, once the servers have elected."""
    deadline = time.monotonic() + patient(60)
    while True:
        try:
            channel.queue_declare(name, durable=True, arguments=arguments or None)
        except ChannelClosedByBroker as refused:
            if refused.reply_code != 404 or time.monotonic() > deadline:
                raise
            channel = channel.connection.channel()
        else:
            return channel


def told(nodes: Nodes, which: int, *columns: str) -> str:
    return nodes.processes[which].ctl("-q", "list_queues", "--no-table-headers", *columns).strip()


@pytest.mark.timeout(240)
def test_a_mirrored_queue_outlives_its_leader(nodes: Nodes) -> None:
    one, two = (nodes.start(name, mirrored="quorum") for name in ("one", "two"))
    until_agreed(one).ctl("set_policy", "ha", "^orders", HA)
    channel = declare(nodes.channel(one), "orders")
    row = told(nodes, 0, "name", "type", "policy", "leader").split()
    assert row[:3] == ["orders", "quorum", "ha"]
    channel.confirm_delivery()
    for number in range(20):
        channel.basic_publish("", "orders", b"%d" % number, PERSISTENT)
    nodes.cluster.by_name(row[3]).kill()
    for number in range(20, 40):  # confirmed each, once another leads
        channel.basic_publish("", "orders", b"%d" % number, PERSISTENT)
    other = declare(nodes.channel(two), "orders")
    found: list[int] = []
    for _, _, body in other.consume("orders", auto_ack=True, inactivity_timeout=patient(20)):
        if body is None:
            break
        found.append(int(body))
        if len(found) == 40:
            break
    assert found == list(range(40))


@pytest.mark.timeout(180)
def test_a_restart_without_policy_and_setting_still_finds_it(nodes: Nodes) -> None:
    process = nodes.start("one", mirrored="quorum")
    until_agreed(process).ctl("set_policy", "ha", "^orders", HA)
    declare(nodes.channel(process), "orders", **{"x-max-length": 9, "x-queue-mode": "lazy"})
    process.ctl("clear_policy", "ha")
    process.kill()
    again = nodes.start("one")
    asked = {"x-max-length": 9, "x-queue-mode": "lazy"}
    channel = declare(nodes.channel(again), "orders", **asked)
    declare(channel, "orders", **asked, **{"x-queue-type": "classic"})
    assert told(nodes, -1, "name", "type") == "orders\tquorum"
    declare(channel, "other")
    assert "other\tclassic" in told(nodes, -1, "name", "type")
    with pytest.raises(ChannelClosedByBroker, match="inequivalent arg 'x-max-length'"):
        declare(pika.BlockingConnection(pika.URLParameters(again.url)).channel(), "orders")
