"""Fills queues of a node and keeps the book of what must be in them afterwards.

State: a connection with two channels (one publishes with confirms, one consumes) for one virtual host, and the rows of
a manifest: per queue the messages that a node has to find, in their order. Callers: the contents of the archives.
Invariant: `settled` returns only once everything published is confirmed, so that the book holds after a kill as well.
"""

from __future__ import annotations

import hashlib
from typing import Any

from tests.differential.peer import Link, Peer
from tests.support.field_table import decode_properties, encode_properties
from tests.support.store_archives.reading import Row, body_row, message_row

FANOUT = "amq.fanout"


def text_body(number: int, size: int) -> bytes:
    """Return a body of this size that compresses well and is no other's."""
    return (b"%d," % number * (size // len(b"%d," % number) + 1))[:size]


def noise(number: int, size: int) -> bytes:
    """Return a body of this size that does not compress, with every octet in it sooner or later."""
    pieces = (hashlib.sha256(b"%d %d" % (number, at)).digest() for at in range(size // 32 + 1))
    return b"".join(pieces)[:size]


class Filling:
    """One virtual host of a node while it is being filled."""

    def __init__(self, port: int, vhost: str = "/") -> None:
        self.vhost = vhost
        self.link = Link(port, vhost=vhost)
        self.consuming = Peer(self.link, 2, set())
        self.publishing = Peer(self.link, 1, set())
        self.publishing.confirm()
        self.rows: dict[str, Row] = {}
        self._published = 0
        self._unconfirmed: set[int] = set()
        self.refused: set[int] = set()

    def queue(
        self, name: str, what: str, arguments: Row | None = None, **options: Any
    ) -> list[Row]:
        """Declare a durable queue and return its messages, none yet; `what` says why it is in the archive."""
        options = {"durable": True, **options}
        declared = self.publishing.queue(name, arguments or {}, **options)
        if options["durable"]:
            self.rows[declared] = {
                "vhost": self.vhost,
                "name": declared,
                "what": what,
                "messages": [],
            }
            return self.messages(declared)
        return []

    def messages(self, queue: str) -> list[Row]:
        """Return the book of one queue."""
        found: list[Row] = self.rows[queue]["messages"]
        return found

    def publish(self, exchange: str, key: str, body: bytes, *queues: str, **properties: Any) -> Row:
        """Publish a persistent message, and write it down for the queues that keep it."""
        properties = {"delivery_mode": 2, **properties}
        self.publishing.publish(exchange, key, body, **properties)
        self._published += 1
        self._unconfirmed.add(self._published)
        row = {
            "body": body_row(body),
            "exchange": exchange,
            "routing_key": key,
            "redelivered": False,
            "properties": decode_properties(encode_properties(properties)),
        }
        for queue in queues:
            self.messages(queue).append({**row})
        return row

    def put(self, queue: str, *bodies: bytes, **properties: Any) -> None:
        """Publish to one queue that keeps everything."""
        for body in bodies:
            self.publish("", queue, body, queue, **properties)

    def settled(self) -> None:
        """Wait for all confirms."""
        while self._unconfirmed:
            events = self.publishing.take(1)
            if not events or events[0]["method"] not in {"basic.ack", "basic.nack"}:
                raise AssertionError(f"waiting for confirms: {events}")
            tag, is_ack = int(events[0]["delivery_tag"]), events[0]["method"] == "basic.ack"
            covered = {
                each
                for each in self._unconfirmed
                if each == tag or (events[0]["multiple"] and each < tag)
            }
            self._unconfirmed -= covered
            if not is_ack:
                self.refused |= covered

    def held(self, queue: str, count: int) -> list[Row]:
        """Take messages without acknowledging them; they stay so until this connection ends."""
        self.settled()
        return [self.consuming.get(queue, no_ack=False) for _ in range(count)]

    def past(self, queue: str, count: int) -> None:
        """Have transient messages go past those in a queue to a consumer: they take places, nothing else."""
        ready = len(self.messages(queue))
        self.held(queue, ready)
        channel = self.consuming.beside(3)
        channel.consume(queue, "past")
        for _ in range(count):
            self.publish("", queue, b"past", delivery_mode=1)
        self.settled()
        assert len(channel.take(count)) == count
        channel.cancel("past")
        channel.ack(0, multiple=True)
        channel.close_channel()
        self.consuming.nack(0, multiple=True)
        assert self.consuming.wait_ready(queue, ready) == ready

    def take_and_keep(self, queue: str, kept: set[int]) -> None:
        """Have every message of a queue delivered, acknowledge all but some (by place), put those back."""
        self.settled()
        messages = self.messages(queue)
        channel = self.consuming.beside(3)
        channel.consume(queue, "all")
        events = channel.take(len(messages))
        assert [message_row(each)["body"] for each in events] == [row["body"] for row in messages]
        channel.cancel("all")
        for place, event in enumerate(events):
            if place not in kept:
                channel.ack(event["delivery_tag"])
        channel.nack(0, multiple=True)
        channel.close_channel()
        left = [{**row, "redelivered": True} for place, row in enumerate(messages) if place in kept]
        messages[:] = left
        assert self.consuming.wait_ready(queue, len(left)) == len(left)

    def acked(self, queue: str, event: Row) -> None:
        """Acknowledge one of those held, and strike it out."""
        self.consuming.ack(event["delivery_tag"])
        wanted = body_row(event["body"])
        messages = self.messages(queue)
        del messages[next(at for at, row in enumerate(messages) if row["body"] == wanted)]

    def mark_redelivered(self, queue: str, event: Row) -> None:
        """Note that one of those held comes back as redelivered."""
        wanted = body_row(event["body"])
        next(row for row in self.messages(queue) if row["body"] == wanted)["redelivered"] = True
