"""Many messages in one write: what is handled in runs here says what RabbitMQ says of them one by one."""

from __future__ import annotations

from typing import Any

from tests.differential.broker import Broker
from tests.differential.peer import Peer

Record = Any
COUNT = 60
DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
MIXED = (
    {},
    {"expiration": "600000"},
    {"priority": 3},
    {"reply_to": "answers", "correlation_id": "7"},
    {"expiration": "900000", "priority": 1, "headers": {"n": 1}},
    {"user_id": "guest"},
    {"headers": {"CC": ["other"]}},
)


def _numbered(queue: str, *properties: dict[str, Any], count: int = COUNT) -> list[Any]:
    given = properties or ({},)
    return [("", queue, b"%d" % each, given[each % len(given)]) for each in range(count)]


def _at_once(peer: Peer, messages: list[Any]) -> None:
    peer.publish_at_once(*messages)
    peer.sync()


def properties_of_every_kind(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.queue("other")
    _at_once(peer, _numbered("q", *MIXED))
    peer.wait_ready("q", COUNT)
    return [[peer.get("q") for _ in MIXED], peer.drain("q"), peer.drain("other")]


def a_refused_expiration_among_others(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    messages = _numbered("q", {"expiration": "600000"}, {"reply_to": "r"})
    messages[40] = ("", "q", b"bad", {"expiration": "soon"})
    peer.publish_at_once(*messages)
    return [peer.take(1), peer.open_again(), peer.drain("q")]


def somebody_elses_user_id_among_ones_own(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    messages = _numbered("q", {"user_id": "guest"})
    messages[40] = ("", "q", b"bad", {"user_id": "nobody"})
    peer.publish_at_once(*messages)
    return [peer.take(1), peer.open_again(), peer.drain("q")]


def priorities(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-priority": 5})
    _at_once(peer, _numbered("q", *({"priority": each} for each in (0, 9, 3, 5, 1))))
    peer.wait_ready("q", COUNT)
    return peer.drain("q")


def keys_that_differ(broker: Broker) -> Record:
    peer = broker.peer()
    for queue, key in (("a", "k.1"), ("b", "k.*"), ("c", "#")):
        peer.queue(queue)
        peer.bind(queue, "amq.topic", key)
    messages = [("amq.topic", f"k.{each % 3}", b"%d" % each, {}) for each in range(COUNT)]
    messages += [("", "a", b"direct %d" % each, {}) for each in range(3)]
    _at_once(peer, messages)
    peer.wait_ready("c", COUNT)
    return [peer.drain(queue) for queue in "abc"]


def drop_head_to_a_dead_letter_exchange(broker: Broker) -> Record:
    return _limited(broker, {"x-max-length": 10}, {})


def drop_head_by_bytes_to_a_dead_letter_exchange(broker: Broker) -> Record:
    return _limited(broker, {"x-max-length-bytes": 15}, {})


def drop_head_of_a_lazy_queue(broker: Broker) -> Record:
    return _limited(broker, {"x-max-length": 7, "x-queue-mode": "lazy"}, {"delivery_mode": 2})


def drop_head_with_priorities(broker: Broker) -> Record:
    each = ({"priority": number} for number in (1, 4, 0, 2, 2))
    return _limited(broker, {"x-max-length": 10, "x-max-priority": 5}, *each)


def drop_head_of_everything(broker: Broker) -> Record:
    return _limited(broker, {"x-max-length": 0}, {"expiration": "600000"})


def reject_publish_in_a_run(broker: Broker) -> Record:
    return _limited(broker, {"x-max-length": 10, "x-overflow": "reject-publish"}, {})


def reject_publish_dlx_in_a_run(broker: Broker) -> Record:
    return _limited(broker, {"x-max-length": 10, "x-overflow": "reject-publish-dlx"}, {})


def _limited(broker: Broker, arguments: dict[str, Any], *properties: dict[str, Any]) -> Record:
    """Twice more than there is room for: what stays, what dies, in which order, and what publishers are told."""
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {**arguments, **DEAD}, durable=True)
    peer.confirm()
    messages = _numbered("q", *properties)
    for part in (messages[: COUNT // 2], messages[COUNT // 2 :]):
        peer.publish_at_once(*part)
    confirms = peer.confirms(COUNT)
    ready = peer.ready("q")  # before, the question overtakes the messages in RabbitMQ
    kept = peer.drain("q")
    if arguments.get("x-overflow") != "reject-publish":
        peer.wait_ready("dead", COUNT - len(kept))
    return [ready, confirms, kept, peer.drain("dead")]
