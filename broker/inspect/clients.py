"""What clients do beyond RabbitMQ's rows: why a connection stands still, and who holds unacked messages since when.

Owns no state. Ages are those of the sweep that looks for overdue deliveries: never too long, and too short by a second
at most (`broker.session.ack_timeout`). Called by the UI's pages of connections, channels, consumers and queues.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from burrowmq.broker.channel.channel import Channel
from burrowmq.broker.channel.unacked import Delivery
from burrowmq.broker.inspect.connections import each_session
from burrowmq.broker.inspect.values import Row, plain
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.session.session import Session

DELIVERIES_MAX = 1000
"""Deliveries (runs) of one channel that are looked at; the oldest come first."""
GROUPS_MAX = 50
INPUT = {"rest of a read", "end of turn"}
"""Reasons not to read a connection that are nobody's fault but its own input's."""


def hindrances(node: RunningNode, session: Session) -> list[Row]:
    """Why the connection is not read, or not sent to, right now, and since when; empty for nearly all.

    Each has a `reason`, a sentence, and `since_ms` of wall time (None: since this very turn).
    """
    wire = session.wire
    pauses = {} if wire is None else wire.pauses
    ahead_ms = node.scheduler.wall_ms() - node.scheduler.monotonic() * 1000

    def told(reason: str, since_s: float | None, text: str) -> Row:
        since_ms = None if since_s is None else round(since_s * 1000 + ahead_ms)
        return {"reason": reason, "since_ms": since_ms, "text": text}

    found = []
    if session.is_blocked or "alarm" in pauses:
        reason = node.alarms.reason if node.alarms.active else "an alarm that has just ended"
        text = f"The node is {reason}: publishers wait until it is not any more."
        found.append(told("alarm", pauses.get("alarm"), text))
    if "backlog" in pauses:
        text = "The disk is behind what is published: publishers wait for it."
        found.append(told("disk", pauses["backlog"], text))
    if "cluster" in pauses:
        text = "The cluster is behind what is published: publishers wait for it."
        found.append(told("cluster", pauses["cluster"], text))
    if "rest of a read" in pauses and pauses.keys() <= INPUT:
        text = "The client has sent much that takes long: others have their turn in between."
        found.append(told("input", pauses["rest of a read"], text))
    if wire is not None and ("unread output" in pauses or session.is_congested):
        text = f"The client does not read what it is sent: {wire.bytes_unsent} bytes wait for it."
        found.append(told("client", wire.unread_since_s, text))
    if "held" in pauses:
        text = "A channel waits for a reply, and too much was sent behind it."
        found.append(told("reply", pauses["held"], text))
    return found


def unacked_count(session: Session) -> int:
    """What the connection's channels hold."""
    return sum(channel.unacked.count for channel in session.channels.values())


def oldest_unacked(node: RunningNode, channel: Channel) -> Row | None:
    """The delivery that a channel has held longest."""
    delivery = next(channel.unacked.oldest_first(), None)
    return None if delivery is None else _delivery_row(node, channel, delivery)


def _delivery_row(node: RunningNode, channel: Channel, delivery: Delivery) -> Row:
    tag = delivery.first_tag + delivery.head
    return {
        "queue": delivery.origin.queue_name,
        "vhost": channel.session.vhost_name,
        "consumer_tag": "" if delivery.consumer is None else delivery.consumer.tag,
        "delivery_tag": tag,
        "at_least_s": round(node.ack_timeouts.age_s(channel, tag), 1),
    }


def _live(channel: Channel) -> Iterator[Delivery]:
    found = islice(channel.unacked.oldest_first(), DELIVERIES_MAX)
    return (each for each in found if each.head < len(each.messages))


def unacked_by_consumer(node: RunningNode, channel: Channel) -> list[Row]:
    """What a channel holds by queue and consumer, each with its oldest; an empty tag is basic.get."""
    found: dict[tuple[str, str], Row] = {}
    for delivery in _live(channel):
        tag = "" if delivery.consumer is None else delivery.consumer.tag
        key = (delivery.origin.queue_name, tag)
        if key not in found:
            if len(found) == GROUPS_MAX:
                break
            found[key] = {**_delivery_row(node, channel, delivery), "count": 0}
        found[key]["count"] += len(delivery.messages) - delivery.head - delivery.hole_count
    return list(found.values())


def holders(node: RunningNode, vhost: str, queue: QueuePort) -> Iterator[Row | None]:
    """Who holds unacked messages of a queue: a row a channel, None where one holds none, so that others get a turn."""
    for session in each_session(node, vhost):
        for number in sorted(session.channels):
            channel = session.channels.get(number)
            if channel is None or not channel.unacked.count:
                yield None
                continue
            mine = [each for each in _live(channel) if each.origin.queue_name == queue.name]
            yield _holder(node, session, channel, mine) if mine else None


def _holder(node: RunningNode, session: Session, channel: Channel, mine: list[Delivery]) -> Row:
    held = sum(len(each.messages) - each.head - each.hole_count for each in mine)
    properties = session.connection.client_properties or {}
    return {
        **_delivery_row(node, channel, mine[0]),
        "channel": f"{session.name} ({channel.number})",
        "number": channel.number,
        "connection": session.name,
        "user_provided_name": plain(properties.get("connection_name")),
        "user": session.user.name,
        "count": held,
    }
