"""What the archives of a release hold: one of everything that a data directory can.

State: none. Callers: the maker. `fill` makes definitions and messages over AMQP and HTTP and returns the queues of the
manifest; the connections that it returns hold unacknowledged messages, so they have to stay open until the node is
stopped or killed. Everything is the same in each run but the store's identity and the times of dead letters.

Expiry: an archive is opened years after it was made. Ten years, the longest time to live that there is, is used where
a message has to be there; half a minute, spent before anybody opens the archive, where it has to be gone.
"""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from tests.support.field_table import Typed
from tests.support.store_archives.filling import Filling, noise, text_body
from tests.support.store_archives.reading import (
    ANY_TIME,
    FILLED_WHEN_OPENED,
    Row,
    message_row,
    request,
)

TEN_YEARS_MS = 315_360_000_000
SOON_MS = 30_000
SIZES = (0, 1, 100, 4095, 4096, 4097, 5000, 200_000)
ODD_VHOST = 'odd /vhost% "ü"'
LONGEST_NAME = "long-" + "ü" * 125
EVERY_TYPE: dict[str, Any] = {
    "b": Typed("b", -100),
    "B": Typed("B", 200),
    "s": Typed("s", -30000),
    "u": Typed("u", 60000),
    "I": -2_000_000_000,
    "i": Typed("i", 4_000_000_000),
    "l": -(1 << 62),
    "f": Typed("f", 0.5),
    "d": -1.25e300,
    "D": Typed("D", (2, 12345)),
    "T": Typed("T", 1_700_000_000),
    "t": True,
    "V": None,
    "x": b"\x00\xff\xce",
    "S": "text with ü",
    "A": [1, "two", [3.0, {"four": None}]],
    "F": {"inner": {"deeper": Typed("T", 1)}, "empty": {}},
}
EVERY_PROPERTY: dict[str, Any] = {
    "content_type": "application/json",
    "content_encoding": "gzip",
    "headers": EVERY_TYPE,
    "priority": 3,
    "correlation_id": "correlation",
    "reply_to": "somewhere",
    "expiration": str(TEN_YEARS_MS),
    "message_id": "message",
    "timestamp": 1_700_000_000,
    "type": "kind",
    "user_id": "guest",
    "app_id": "maker",
    "cluster_id": "cluster",
}


def password_hash(password: str, algorithm: str = "sha256") -> str:
    """Return RabbitMQ's salted hash, the salt always the same."""
    salt = b"salt"
    return base64.b64encode(
        salt + hashlib.new(algorithm, salt + password.encode()).digest()
    ).decode()


def fill(amqp_port: int, management_port: int) -> list[Filling]:
    """Make everything; the last thing is what expires soon. The manifest's queues are the fillings' rows."""
    request(management_port, "POST", "/api/definitions", _document())
    for path, value in {
        f"/api/vhost-limits/{_quoted(ODD_VHOST)}/max-queues": 1000,
        f"/api/vhost-limits/{_quoted(ODD_VHOST)}/max-connections": -1,
        "/api/user-limits/limited/max-channels": 7,
        "/api/user-limits/limited/max-connections": 0,
    }.items():
        request(management_port, "PUT", path, {"value": value})
    main, odd = Filling(amqp_port), Filling(amqp_port, ODD_VHOST)
    _exchanges(main)
    for version in (1, 2):
        _sizes(main, version)
        _transient(main, version)
        _priorities(main, version)
        _unacked(main, version)
        _holes(main, version)
        _lazy(main, version)
    _fan_out(main)
    _by_policy(main, management_port)
    _limits(main)
    _dead_letters(main)
    _names(main)
    _names(odd)
    _gone(main)
    _expiring(main)
    for filling in (main, odd):
        filling.settled()
    return [main, odd]


def fill_levels(amqp_port: int) -> list[Filling]:
    """Make priority queues, and queues whose names look like those of a level's files and are not."""
    main = Filling(amqp_port)
    for name, version in (("q", 2), ("q1", 1)):
        main.queue(name, "levels 0 to 5", {"x-max-priority": 5, "x-queue-version": version})
        _put_by_priority(main, name, [number % 8 for number in range(40)])
    for name in ("alone\0001", "q\0009", "q\00001", "q\0"):
        main.queue(name, "not a level of a priority queue")
        main.put(name, *(text_body(number, size) for number, size in enumerate((10, 5000))))
    main.settled()
    return [main]


def _quoted(text: str) -> str:
    return "".join(f"%{octet:02X}" for octet in text.encode())


def _document() -> Row:
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    return {
        "users": [
            _user("guest", "administrator"),
            _user("limited", "management", "odd tag ü"),
            {**_user("sha512", "monitoring", algorithm="sha512")},
            {**_user("nobody"), "password_hash": ""},
        ],
        "vhosts": [
            {"name": ODD_VHOST, "metadata": {"description": "odd ü", "tags": ["one", "two"]}},
            {"name": "empty"},
        ],
        "permissions": [
            *({"user": "guest", "vhost": vhost, **everything} for vhost in ("/", ODD_VHOST)),
            {"user": "limited", "vhost": ODD_VHOST, "configure": "^$", "write": "^a|b$", "read": ""},
        ],
        "topic_permissions": [
            {"user": "limited", "vhost": ODD_VHOST, "exchange": "amq.topic", "write": "^{username}", "read": ".*"},
        ],
        "parameters": [
            {
                "vhost": "/",
                "component": "operator_policy",
                "name": "operator",
                "value": {"pattern": "^operator", "definition": {"max-length": 50}, "priority": 1, "apply-to": "queues"},
            },
        ],
        "global_parameters": [
            {"name": "cluster_name", "value": "archive@example"},
            {"name": "odd", "value": {"a": [1, None, "ü"]}},
        ],
        "policies": [
            _policy("/", "lazy", "^lazy-by-policy$", {"queue-mode": "lazy"}, priority=2),
            _policy("/", "version-1", "^v1-by-policy$", {"queue-version": 1}),
            _policy("/", "dead", "^dead-by-policy$", {"dead-letter-exchange": "dlx", "max-length": 3}),
            _policy("/", "exchange", "^x-topic$", {"alternate-exchange": "x-fanout"}, apply_to="exchanges"),
            _policy(ODD_VHOST, 'odd "policy" ü', "[aü]|\\d", {"message-ttl": TEN_YEARS_MS}),
        ],
    }  # fmt: skip


def _user(name: str, *tags: str, algorithm: str = "sha256") -> Row:
    return {
        "name": name,
        "password_hash": password_hash(name, algorithm),
        "hashing_algorithm": f"rabbit_password_hashing_{algorithm}",
        "tags": list(tags),
    }


def _policy(
    vhost: str, name: str, pattern: str, definition: Row, *, apply_to: str = "queues", priority: int = 0
) -> Row:  # fmt: skip
    return {
        "vhost": vhost,
        "name": name,
        "pattern": pattern,
        "apply-to": apply_to,
        "definition": definition,
        "priority": priority,
    }


def _exchanges(main: Filling) -> None:
    peer = main.publishing
    for kind in ("direct", "fanout", "topic", "headers"):
        arguments = {"alternate-exchange": "x-fanout"} if kind != "fanout" else EVERY_TYPE
        peer.exchange(f"x-{kind}", kind, arguments, durable=True)
    peer.exchange("x-internal", "topic", {}, durable=True, internal=True)
    peer.exchange("x-auto-delete", "direct", {}, durable=True, auto_delete=True)
    peer.exchange("dlx", "fanout", {}, durable=True)
    peer.exchange("late", "fanout", {}, durable=True)
    peer.bind_exchange("x-internal", "x-topic", "a.#", {"only": "here"})
    peer.bind_exchange("x-auto-delete", "x-headers", "", {"x-match": "any", "kind": "ü", "n": 7})
    main.queue("bound", "bindings of every exchange type, and what came through them", EVERY_TYPE)
    peer.bind("bound", "x-direct", "key ü")
    peer.bind("bound", "x-direct", "")
    peer.bind("bound", "x-internal", "a.*.c")
    peer.bind("bound", "x-headers", "", {"x-match": "all", **EVERY_TYPE})
    main.queue("unrouted", "what the alternate exchange got")
    peer.bind("unrouted", "x-fanout", "any")
    main.publish("x-direct", "key ü", b"direct", "bound")
    main.publish("x-topic", "a.b.c", b"topic through two exchanges", "bound")
    main.publish("x-headers", "", b"headers", "bound", headers=EVERY_TYPE)
    main.publish("x-direct", "elsewhere", b"alternate by argument", "unrouted")
    main.publish("x-topic", "z", b"alternate by policy", "unrouted")


def _sizes(main: Filling, version: int) -> None:
    name = f"v{version}-sizes"
    main.queue(name, "bodies on both sides of the embed threshold", {"x-queue-version": version})
    main.put(name, *(text_body(number, size) for number, size in enumerate(SIZES)))
    main.put(name, noise(1, 90), noise(2, 5000), b"everything", **EVERY_PROPERTY)
    main.put(name, b"no properties but the mode")


def _transient(main: Filling, version: int) -> None:
    name = f"v{version}-transient"
    main.queue(name, "each second message was transient and is lost", {"x-queue-version": version})
    for number in range(20):
        body = text_body(number, (30, 5000)[number // 2 % 2])
        if number % 2:
            main.publish("", name, body, delivery_mode=1)
        else:
            main.put(name, body)


def _put_by_priority(main: Filling, name: str, priorities: list[int]) -> None:
    """Publish with these priorities, and write down the order in which the queue gives them."""
    top = 5
    for number, priority in enumerate(priorities):
        main.put(name, text_body(number, (20, 5000)[number % 7 == 3]), priority=priority)
    main.messages(name).sort(key=lambda row: -min(row["properties"]["priority"], top))


def _priorities(main: Filling, version: int) -> None:
    arguments = {"x-max-priority": 5, "x-queue-version": version}
    main.queue(f"v{version}-priority", "levels 0 to 5, priorities above it", arguments)
    _put_by_priority(main, f"v{version}-priority", [number % 8 for number in range(60)])
    main.queue(f"v{version}-priority-high", "messages in level 4 only", arguments)
    _put_by_priority(main, f"v{version}-priority-high", [4] * 12)
    name = f"v{version}-priority-held"
    main.queue(name, "priorities, some unacknowledged or acknowledged in the middle", arguments)
    _put_by_priority(main, name, [0, 5, 5, 2, 0, 2, 2])
    events = main.held(name, 5)
    main.acked(name, events[1])
    main.acked(name, events[3])
    for event in (events[0], events[2], events[4]):
        main.mark_redelivered(name, event)


def _unacked(main: Filling, version: int) -> None:
    name = f"v{version}-unacked"
    main.queue(name, "unacknowledged when the node stopped", {"x-queue-version": version})
    main.put(name, *(text_body(number, (50, 6000)[number % 3 == 1]) for number in range(12)))
    events = main.held(name, 6)
    main.acked(name, events[2])
    for at in (0, 1, 3, 4, 5):
        main.mark_redelivered(name, events[at])


def _holes(main: Filling, version: int) -> None:
    """More than the 16,384 places of an index segment; acknowledged are most, on both sides of its end.

    Those between went straight to a consumer. In the files, with checksums that do not compress, they would make the
    archive three times as large.
    """
    name = f"v{version}-holes"
    main.queue(name, "holes in two index segments", {"x-queue-version": version})
    first, second, behind = 1000, 4000, 600
    main.put(name, *(b"%d" % number for number in range(first)))
    main.past(name, 16_384 + behind - first - second)
    main.put(name, *(b"%d" % number for number in range(first, first + second)))
    end = first + second - behind
    kept = {*range(0, end, 150), *range(end - 5, end + 5), *range(end + 100, first + second, 99)}
    main.take_and_keep(name, kept)
    main.put(name, b"after the holes", text_body(1, 5000))


def _lazy(main: Filling, version: int) -> None:
    name = f"v{version}-lazy"
    main.queue(name, "lazy by argument", {"x-queue-mode": "lazy", "x-queue-version": version})
    main.put(name, *(text_body(number, (100, 5000)[number % 5 == 4]) for number in range(30)))


def _fan_out(main: Filling) -> None:
    """One copy in the shared store for five queues of both versions; each acknowledged other ones of them."""
    peer = main.publishing
    peer.exchange("x-five", "fanout", {}, durable=True)
    names = [f"five-{number}" for number in range(5)]
    for number, name in enumerate(names):
        main.queue(
            name, "shares its messages with four queues", {"x-queue-version": number % 2 + 1}
        )
        peer.bind(name, "x-five")
    for number in range(10):
        main.publish("x-five", f"key {number}", text_body(number, 5000 + 1000 * number), *names)
    main.publish("x-five", "small", b"a copy in each queue", *names)
    main.settled()
    for number, name in enumerate(names):
        main.take_and_keep(name, set(range(11)) - {number, number + 1, 9})


def _by_policy(main: Filling, management_port: int) -> None:
    for name, what in (
        ("lazy-by-policy", "lazy by policy"),
        ("v1-by-policy", "version 1 by policy"),
        ("operator", "a limit by operator policy"),
    ):
        main.queue(name, what)
        main.put(name, *(text_body(number, (100, 5000)[number % 4 == 2]) for number in range(12)))
    for versions in ((2, 1), (1, 2), (1, 2, 1)):
        _converted(main, management_port, versions)


def _converted(main: Filling, management_port: int, versions: tuple[int, ...]) -> None:
    """A queue that a policy took from version to version while it held messages, some of them acknowledged."""
    name = "-".join(["converted", *map(str, versions)])
    main.queue(name, "converted from version to version while it held messages")
    for number, version in enumerate(versions):
        definition = {"queue-version": version}
        policy = {"pattern": f"^{name}$", "apply-to": "queues", "definition": definition}
        request(management_port, "PUT", f"/api/policies/%2F/{name}", policy)
        main.put(
            name, *(text_body(100 * number + at, (100, 5000)[at % 4 == 2]) for at in range(20))
        )
        main.take_and_keep(name, set(range(0, len(main.messages(name)), 3)))


def _limits(main: Filling) -> None:
    main.queue("max-length", "the last five of ten", {"x-max-length": 5})
    main.put("max-length", *(b"%d" % number for number in range(10)))
    del main.messages("max-length")[:5]
    main.queue("max-bytes", "as many as fit", {"x-max-length-bytes": 250})
    main.put("max-bytes", *(text_body(number, 100) for number in range(4)))
    del main.messages("max-bytes")[:2]
    name = "reject-publish"
    main.queue(name, "the first three", {"x-max-length": 3, "x-overflow": "reject-publish"})
    main.put(name, b"0", b"1", b"2")
    main.settled()
    for body in (b"3", b"4"):
        main.publish("", name, body)
    main.settled()
    assert len(main.refused) == 2
    main.queue("single-active", "single active consumer", {"x-single-active-consumer": True})
    main.put("single-active", b"0", b"1")
    main.queue("auto-delete", "durable, deleted with its last consumer", auto_delete=True)
    main.put("auto-delete", b"0")
    main.queue(
        "ten-years", "far from expired", {"x-message-ttl": TEN_YEARS_MS, "x-expires": TEN_YEARS_MS}
    )
    main.put("ten-years", b"queue's", text_body(1, 5000))
    main.put("ten-years", b"message's", expiration=str(TEN_YEARS_MS - 1))
    main.queue("empty", "never had a message")
    main.queue("emptied", "all its messages were acknowledged")
    main.put("emptied", *(text_body(number, (10, 5000)[number % 2]) for number in range(10)))
    main.take_and_keep("emptied", set())


def _dead_letters(main: Filling) -> None:
    """Rejected and too many, with the death that the broker wrote: read from a copy in a second queue."""
    peer = main.publishing
    main.queue("dead", "dead letters with their x-death")
    peer.queue("dead-copy")
    peer.bind("dead", "dlx")
    peer.bind("dead-copy", "dlx")
    main.queue("dead-by-policy", "max-length and dead-lettering by policy")
    main.put("dead-by-policy", *(b"%d" % number for number in range(5)))
    del main.messages("dead-by-policy")[:2]
    arguments = {"x-dead-letter-exchange": "dlx", "x-dead-letter-routing-key": "by argument"}
    main.queue("rejecting", "three of five rejected", arguments)
    main.put("rejecting", b"0", text_body(1, 5000), b"2", text_body(3, 200), headers={"own": 1})
    main.put("rejecting", b"4")
    for event in main.held("rejecting", 3):
        main.consuming.reject(event["delivery_tag"], requeue=False)
    del main.messages("rejecting")[:3]
    assert peer.wait_ready("dead-copy", 5) == 5
    main.messages("dead").extend(message_row(peer.get("dead-copy")) for _ in range(5))
    peer.delete("dead-copy")


def _names(filling: Filling) -> None:
    for name in (
        LONGEST_NAME,
        "line\r\nbreaks are taken out",
        " ../../etc/%2F?*'\"\\ <b>&amp; \t",
        "日本語 🐇",
        "UPPER",
        "upper",
    ):
        declared = filling.publishing.queue(name, {}, durable=True)
        filling.queue(declared, "an odd name")
        filling.publishing.bind(declared, "amq.topic", f"odd.{declared[:50]}")
        filling.put(declared, declared[:20].encode(), text_body(1, 5000))


def _gone(main: Filling) -> None:
    """What no restart keeps: the manifest does not name it."""
    peer = main.publishing
    main.queue("not-durable", "", durable=False)
    main.publish("", "not-durable", b"persistent in a queue that is not")
    peer.exchange("x-not-durable", "fanout", {})
    peer.bind("empty", "x-not-durable")
    peer.bind("not-durable", "amq.topic", "gone")


def _expiring(main: Filling) -> None:
    """Expired by the time the archive is opened: at the head, and behind a head that does not expire."""
    peer = main.publishing
    dlx: Row = {"x-dead-letter-exchange": "late"}
    main.queue("expiring", "all expired when opened", {"x-message-ttl": SOON_MS, **dlx})
    main.queue("behind", "one expires behind the head, when that is gone", dlx)
    late = main.queue(
        FILLED_WHEN_OPENED, "what expired: read it after the queues that it comes from"
    )
    peer.bind(FILLED_WHEN_OPENED, "late")
    for number in range(3):
        row = main.publish("", "expiring", text_body(number, (10, 5000)[number % 2]))
        late.append(_died(row, "expiring"))
    main.put("behind", b"head")
    expiration = {"expiration": str(SOON_MS)}
    row = main.publish("", "behind", b"expires", **expiration)
    late.append(_died(row, "behind", "original-expiration"))
    main.put("behind", b"last")
    main.rows[FILLED_WHEN_OPENED] = main.rows.pop(FILLED_WHEN_OPENED)


def _died(row: Row, queue: str, *extra: str) -> Row:
    """Return the dead letter that a message becomes when it expires."""
    properties = dict(row["properties"])
    expiration = properties.pop("expiration", None)
    death = {
        "count": "l:1",
        "reason": "S:expired",
        "queue": f"S:{queue}",
        "time": ANY_TIME,
        "exchange": "S:",
        "routing-keys": [f"S:{row['routing_key']}"],
    }
    if extra:
        death["original-expiration"] = f"S:{expiration}"
    properties["headers"] = {"x-death": [death]}
    for which in ("first", "last"):
        for key, value in (("reason", "expired"), ("queue", queue), ("exchange", "")):
            properties["headers"][f"x-{which}-death-{key}"] = f"S:{value}"
    return {**row, "exchange": "late", "properties": properties}
