"""Direct reply-to targets."""

from __future__ import annotations

import re

from pika import spec

from burrowmq.broker.channel.reply import PREFIX, PSEUDO_QUEUE, ReplyTargets
from tests.support.bench.broker import BrokerBench
from tests.support.counting_entropy import CountingEntropy
from tests.support.messages import message
from tests.support.wire_client import publish_bytes


def test_each_channel_has_a_key_of_its_own_for_as_long_as_it_consumes():
    bench = BrokerBench()
    client = bench.connect(1, 2)
    targets = ReplyTargets(CountingEntropy())
    first = targets.add(client.session.channels[1], "r")
    second = targets.add(client.session.channels[2], "r")
    assert first.key != second.key
    assert first.key.startswith(PREFIX)
    # Clients match it, php-amqp's tests for one: two parts, padded as base64 of 16 octets is.
    assert re.fullmatch(rb"[\w=-]+\.[\w-]{22}==", first.key.removeprefix(PREFIX))
    assert (targets.find(first.key), targets.find(second.key)) == (first, second)
    assert first.name.encode() == first.key
    targets.remove(first)
    targets.remove(first)
    assert targets.find(first.key) is None


def test_a_reply_is_delivered_at_once_and_uses_up_no_tag():
    bench = BrokerBench()
    client = bench.connect(1)
    channel = client.session.channels[1]
    target = ReplyTargets(CountingEntropy()).add(channel, "r")
    assert target.publish([message(b"one"), message(b"two")], 0, 6) == 0
    bench.run()
    found = client.read()
    assert [(m.consumer_tag, m.delivery_tag, m.body) for _, m in found] == [
        ("r", 1, b"one"),
        ("r", 1, b"two"),
    ]
    assert channel.next_tag == 1


def test_who_reads_slowly_gets_all_replies():
    bench = BrokerBench()
    client = bench.connect(1)
    target = ReplyTargets(CountingEntropy()).add(client.session.channels[1], "r")
    client.session.is_congested = True
    target.publish([message(b"late")], 0, 4)
    bench.run()
    assert client.names() == ["Basic.Deliver"]


def test_a_reply_does_not_leave_its_virtual_host():
    bench = BrokerBench()
    client = bench.connect(1)
    client.call(1, spec.Basic.Consume(queue=PSEUDO_QUEUE, no_ack=True))
    key = client.session.channels[1].reply_target.name
    bench.create_vhost("other")
    bench.auth.set_permission("other", "guest", bench.auth.permissions["/", "guest"])
    elsewhere = bench.connect(1, vhost="other")
    elsewhere.send(publish_bytes(1, "", key, b"reply", mandatory=True))
    assert (client.names(), elsewhere.names()) == ([], ["Basic.Return"])
    bench.connect(1).send(publish_bytes(1, "", key, b"reply"))
    assert client.names() == ["Basic.Deliver"]
