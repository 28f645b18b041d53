"""A blocking AMQP 0-9-1 client for messages in bulk; standard library only.

Owns no state. Called by the Spark source and sink, by jobs, and by whoever moves many messages:

    with connect("amqp://guest:guest@localhost") as connection:
        consumer = Consumer(connection, "work", prefetch_count=3000)
        messages = consumer.read(3000, idle_timeout_s=1.0)
        ...  # make them durable elsewhere
        consumer.settle(messages)

One connection has one channel and does one thing at a time. Layers, highest first: stream_queue; consumer, publisher
and topology; connection; transport; deliveries and framing; address, properties, table; errors.
"""

from pyspark_amqp.wire.address import Address, Tls, parse_address, parse_addresses
from pyspark_amqp.wire.connection import Connection, connect
from pyspark_amqp.wire.consumer import Consumer, ack, barrier, get, peek
from pyspark_amqp.wire.deliveries import Deliveries, Delivery
from pyspark_amqp.wire.errors import (
    BadAddress,
    BadFrame,
    ChannelClosed,
    ConnectFailed,
    ConnectionClosed,
    ConnectionLost,
    LoginRefused,
    NotReady,
    PublishRefused,
    PublishReturned,
    Returned,
    StepTimeout,
    UnsuitableQueue,
    WireError,
)
from pyspark_amqp.wire.publisher import Published, Publisher, message_octets
from pyspark_amqp.wire.topology import (
    QueueState,
    bind_queue,
    declare_exchange,
    declare_queue,
    delete_queue,
    purge_queue,
    queue_state,
    queue_type,
)

__all__ = [
    "Address",
    "BadAddress",
    "BadFrame",
    "ChannelClosed",
    "ConnectFailed",
    "Connection",
    "ConnectionClosed",
    "ConnectionLost",
    "Consumer",
    "Deliveries",
    "Delivery",
    "LoginRefused",
    "NotReady",
    "PublishRefused",
    "PublishReturned",
    "Published",
    "Publisher",
    "QueueState",
    "Returned",
    "StepTimeout",
    "Tls",
    "UnsuitableQueue",
    "WireError",
    "ack",
    "barrier",
    "bind_queue",
    "connect",
    "declare_exchange",
    "declare_queue",
    "delete_queue",
    "get",
    "message_octets",
    "parse_address",
    "parse_addresses",
    "peek",
    "purge_queue",
    "queue_state",
    "queue_type",
]
