"""Direct reply-to."""

from __future__ import annotations

from typing import Any

from tests.differential.broker import Broker
from tests.differential.peer import Peer

Record = Any
REPLY_TO = "amq.rabbitmq.reply-to"


def _asked(broker: Broker) -> tuple[Peer, Peer, str]:
    """A client that waits for replies, a server, and the address that it was given."""
    client, server = broker.peer(), broker.peer()
    client.consume(REPLY_TO, "replies", no_ack=True)
    server.queue("rpc")
    client.publish("", "rpc", b"question", reply_to=REPLY_TO)
    server.wait_ready("rpc", 1)
    return client, server, server.get("rpc")["properties"]["reply_to"]


def a_request_and_its_reply(broker: Broker) -> Record:
    client, server, address = _asked(broker)
    server.publish("", address, b"answer", correlation_id="1")
    return [address.startswith(REPLY_TO + "."), client.take(1)]


def replies_do_not_raise_the_tag(broker: Broker) -> Record:
    client, server, address = _asked(broker)
    server.publish("", address, b"1")
    server.publish("", address, b"2")
    return [each["delivery_tag"] for each in client.take(2)]


def the_consumer_must_not_acknowledge(broker: Broker) -> Record:
    return broker.peer().consume(REPLY_TO, "t")


def one_consumer_a_channel(broker: Broker) -> Record:
    peer = broker.peer()
    return [
        peer.consume(REPLY_TO, "t", no_ack=True),
        peer.consume(REPLY_TO, "t2", no_ack=True),
        peer.consume(REPLY_TO, "t3", no_ack=True),
    ]


def a_request_without_a_consumer(broker: Broker) -> Record:
    peer = broker.peer()
    peer.publish("", "q", b"1", reply_to=REPLY_TO)
    return peer.sync()


def a_request_on_another_channel(broker: Broker) -> Record:
    peer = broker.peer()
    peer.consume(REPLY_TO, "t", no_ack=True)
    other = peer.beside(2)
    other.publish("", "q", b"1", reply_to=REPLY_TO)
    return other.sync()


def declares_tell_whether_the_target_lives(broker: Broker) -> Record:
    client, server, address = _asked(broker)
    alive = [server.declare(address), server.passive(address), server.declare(REPLY_TO)]
    client.cancel("replies")
    return [alive, server.passive(address)]


def mandatory_replies_are_returned_and_delivered(broker: Broker) -> Record:
    client, server, address = _asked(broker)
    server.confirm()
    server.publish("", address, b"1", mandatory=True)
    return [server.take(2), client.take(1)]


def replies_to_nobody(broker: Broker) -> Record:
    client, server, address = _asked(broker)
    client.link.close()
    server.confirm()
    server.publish("", address, b"1", mandatory=True)
    server.publish("", address, b"2")
    return [server.take(1), server.confirms(2)]


def replies_through_another_exchange_do_not_arrive(broker: Broker) -> Record:
    client, server, address = _asked(broker)
    server.publish("amq.direct", address, b"1", mandatory=True)
    return [server.take(1), client.rest()]


def replies_by_cc(broker: Broker) -> Record:
    client, server, address = _asked(broker)
    server.publish("", "none", b"1", headers={"CC": [address]})
    return client.take(1)


def a_cancelled_consumer_gets_nothing(broker: Broker) -> Record:
    client, server, address = _asked(broker)
    cancelled = client.cancel("replies")
    server.publish("", address, b"1", mandatory=True)
    return [cancelled, server.take(1), client.rest()]


def the_pseudo_queue_is_no_queue(broker: Broker) -> Record:
    peer = broker.peer()
    return [
        peer.passive(REPLY_TO),
        peer.get(REPLY_TO),
        peer.bind(REPLY_TO, "amq.direct", "k"),
        peer.purge(REPLY_TO),
        peer.delete(REPLY_TO),
    ]


def the_consumer_shares_the_channels_tags(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.consume("q", "t")
    return peer.consume(REPLY_TO, "t", no_ack=True)


def requests_need_no_permission_for_replies(broker: Broker) -> Record:
    user = broker.user("limited", "", ("^$", "^amq\\.default$", "^$"))
    peer = broker.peer(user=user, password=user)
    reply = peer.consume(REPLY_TO, "t", no_ack=True)
    peer.publish("", "none", b"1", reply_to=REPLY_TO, mandatory=True)
    return [reply, peer.take(1)]


def a_dead_letter_as_a_reply(broker: Broker) -> Record:
    client, server, address = _asked(broker)
    server.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": address})
    server.fill("q", b"1")
    server.reject(server.get("q", no_ack=False)["delivery_tag"], requeue=False)
    return client.bodies(1)
