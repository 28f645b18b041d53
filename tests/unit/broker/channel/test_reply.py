"""Direct reply-to targets."""

from __future__ import annotations

from burrowmq.broker.channel.reply import PREFIX, ReplyTargets
from tests.support.bench.broker import BrokerBench
from tests.support.counting_entropy import CountingEntropy
from tests.support.messages import message


def test_each_channel_has_a_key_of_its_own_for_as_long_as_it_consumes():
    bench = BrokerBench()
    client = bench.connect(1, 2)
    targets = ReplyTargets(CountingEntropy())
    first = targets.add(client.session.channels[1], "r")
    second = targets.add(client.session.channels[2], "r")
    assert first.key != second.key
    assert first.key.startswith(PREFIX)
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
