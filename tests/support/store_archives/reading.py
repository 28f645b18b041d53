"""What a node holds, in the words of a manifest: every message of a queue, and the definitions that last.

State: none. Callers: the maker, and the test that compares a released store with its manifest. A message is a row:
exchange, routing key, properties with the wire types of their headers (`tests.support.field_table`), redelivered flag,
and its body as text, or as size and SHA-256 when it is long or no text. Invariants: reads over AMQP and HTTP only and
imports nothing of the product; what is read is taken from the queue.
"""

from __future__ import annotations

import hashlib
import http.client
import itertools
import json
from typing import Any

from tests.differential.peer import Link, Peer, wait_for

Row = dict[str, Any]
AUTHORIZATION = "Basic Z3Vlc3Q6Z3Vlc3Q="  # guest:guest
LONGEST_TEXT = 40
# A time that the node takes from its clock while the store is opened: any will do.
ANY_TIME = "T:any"
# Nothing is in this queue when the node ends: whoever opens the store finds what has expired.
FILLED_WHEN_OPENED = "late"
# What a definitions document says of the program that wrote it, and what each node makes for itself.
OF_THE_PROGRAM = {"rabbit_version", "rabbitmq_version", "product_name", "product_version"}
# Octets that are no text, as definitions showed them up to 0.1.0, and as they do now.
SHOWN_OTHERWISE = {"\0\ufffd\ufffd": "Not UTF-8, base64 is: AP/O"}


def body_row(body: bytes) -> Row:
    """Return how a manifest writes a body."""
    if len(body) <= LONGEST_TEXT and body.isascii():
        return {"text": body.decode()}
    return {"size": len(body), "sha256": hashlib.sha256(body).hexdigest()}


def message_row(event: Row) -> Row:
    """Return a delivery or get-ok as a manifest's row."""
    return {
        "body": body_row(event["body"]),
        "exchange": event["exchange"],
        "routing_key": event["routing_key"],
        "redelivered": event["redelivered"],
        "properties": event["properties"],
    }


def take_all(peer: Peer, queue: str, at_least: int) -> list[Row]:
    """Take every message of a queue, as soon as there are as many as should be."""
    wait_for(lambda: peer.ready(queue), lambda count: count >= at_least)
    rows = []
    while (event := peer.get(queue))["method"] == "basic.getok":
        rows.append(message_row(event))
    if event["method"] != "basic.getempty":
        raise AssertionError(f"{queue!r}: {event}")
    return rows


def take_everything(port: int, queues: list[Row]) -> dict[str, list[Row]]:
    """Take the messages of a manifest's queues, in its order; by virtual host and name."""
    found: dict[str, list[Row]] = {}
    links = {vhost: Link(port, vhost=vhost) for vhost in {row["vhost"] for row in queues}}
    try:
        peers = {vhost: Peer(link, 1, set()) for vhost, link in links.items()}
        for row in queues:
            rows = take_all(peers[row["vhost"]], row["name"], len(row["messages"]))
            found[title(row)] = [_with_any_time(*pair) for pair in _pairs(rows, row["messages"])]
    finally:
        for link in links.values():
            link.close()
    return found


def title(queue: Row) -> str:
    """Return how a queue is called in messages."""
    return f"{queue['vhost']} {queue['name']}"


def _pairs(found: list[Row], expected: list[Row]) -> list[tuple[Row, Row]]:
    return list(zip(found, [*expected, *[{}] * len(found)], strict=False))


def _with_any_time(found: Any, expected: Any) -> Any:
    """Give what was found, with `ANY_TIME` for a time where any was expected."""
    if expected == ANY_TIME and isinstance(found, str) and found.startswith("T:"):
        return ANY_TIME
    if isinstance(found, dict) and isinstance(expected, dict):
        return {key: _with_any_time(value, expected.get(key)) for key, value in found.items()}
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        return [_with_any_time(*pair) for pair in zip(found, expected, strict=True)]
    return found


def _as_shown_now(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _as_shown_now(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_as_shown_now(each) for each in value]
    return SHOWN_OTHERWISE.get(value, value) if isinstance(value, str) else value


def request(port: int, method: str, path: str, body: Any = None) -> Any:
    """Return the JSON that a node's HTTP API answers; None when it answers nothing."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, path, data, {"Authorization": AUTHORIZATION})
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    if answer.status >= 300:
        raise AssertionError(f"{method} {path}: {answer.status} {text!r}")
    return json.loads(text) if text else None


def check(amqp_port: int, management_port: int, manifest: Row) -> None:
    """Compare a node with a manifest; its messages are taken. Raises AssertionError with the first difference."""
    found, expected = definitions(management_port), _as_shown_now(manifest["definitions"])
    assert list(found) == list(expected), f"kinds of definitions: {list(found)}"
    for kind, rows in expected.items():
        for one, other in itertools.zip_longest(found[kind], rows):
            assert one == other, f"{kind}:\n{one}\n{other}"
    messages = take_everything(amqp_port, manifest["queues"])
    for queue in manifest["queues"]:
        name = title(queue)
        for place, pair in enumerate(itertools.zip_longest(messages[name], queue["messages"])):
            assert pair[0] == pair[1], f"{name} [{place}]:\n{pair[0]}\n{pair[1]}"


def mark_crashed(queues: list[Row]) -> None:
    """Say of a manifest's queues that the node crashed: all that is in them counts as redelivered then."""
    for queue in queues:
        if queue["name"] != FILLED_WHEN_OPENED:
            for message in queue["messages"]:
                message["redelivered"] = True


def definitions(port: int) -> dict[str, list[Row]]:
    """Return the export of a node's definitions, sorted, without what it says of the program."""
    document = request(port, "GET", "/api/definitions")
    return {
        kind: sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))
        for kind, rows in sorted(document.items())
        if kind not in OF_THE_PROGRAM
    }


def lasting(document: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """Return the definitions that are there after a restart: nothing of what is not durable."""
    kept = {**document}
    gone = set()
    for kind, destination_type in (("queues", "queue"), ("exchanges", "exchange")):
        kept[kind] = [row for row in document[kind] if row["durable"]]
        gone |= {
            (row["vhost"], destination_type, row["name"])
            for row in document[kind]
            if not row["durable"]
        }
    kept["bindings"] = [
        row
        for row in document["bindings"]
        if (row["vhost"], row["destination_type"], row["destination"]) not in gone
        and (row["vhost"], "exchange", row["source"]) not in gone
    ]
    return kept
