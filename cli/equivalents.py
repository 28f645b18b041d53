"""What of RabbitMQ's definitions has an equal here, and what becomes of the rest.

`taken` makes the document that is imported, and a finding for everything that is not as it was: changed, left out, or
kept without effect. Owns no state; pure functions over the JSON of an export. Called by `import_from`; the lists of
keys are the server's, of which this package knows nothing (a test compares them).

Source: what RabbitMQ 3.8 to 3.13 export; `broker.definitions.document` is what takes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

Row = dict[str, Any]

EXCHANGE_TYPES: Final = frozenset(
    (
        "direct", "fanout", "topic", "headers",
        "x-consistent-hash", "x-modulus-hash", "x-random", "x-recent-history",
    )
)  # fmt: skip
QUEUE_ARGUMENTS: Final = frozenset(
    (
        "x-expires", "x-message-ttl", "x-dead-letter-exchange", "x-dead-letter-routing-key", "x-max-length",
        "x-max-length-bytes", "x-max-priority", "x-overflow", "x-queue-mode", "x-queue-version",
        "x-single-active-consumer", "x-queue-type", "x-queue-master-locator",
    )
)  # fmt: skip
OTHER_TYPES: Final = frozenset(
    (
        "x-max-age", "x-stream-max-segment-size-bytes", "x-initial-cluster-size", "x-queue-leader-locator",
        "x-max-in-memory-length", "x-max-in-memory-bytes", "x-delivery-limit", "x-quorum-initial-group-size",
        "x-dead-letter-strategy",
    )
)  # fmt: skip
"""Arguments of quorum queues and streams: a classic queue is refused with them."""
POLICY_KEYS: Final = frozenset(
    (
        "alternate-exchange", "consumer-timeout", "dead-letter-exchange", "dead-letter-routing-key", "expires",
        "max-length", "max-length-bytes", "message-ttl", "overflow", "queue-master-locator", "queue-mode",
        "queue-version",
    )
)  # fmt: skip
MIRRORING: Final = frozenset(
    (
        "ha-mode", "ha-params", "ha-promote-on-failure", "ha-promote-on-shutdown", "ha-sync-batch-size", "ha-sync-mode",
    )
)  # fmt: skip
HASHES: Final = frozenset(f"rabbit_password_hashing_{name}" for name in ("sha256", "sha512", "md5"))
COMPONENTS: Final = frozenset(("operator_policy", "vhost-limits"))
WEIGHT_MAX: Final = 10_000


class Finding(NamedTuple):
    """One thing that is not here as it is there."""

    kind: str
    vhost: str
    name: str
    what: str
    becomes: str


Findings = list[Finding]


def taken(document: Row) -> tuple[Row, Findings]:
    """The document to import, and what is different in it."""
    found: Findings = []
    result = dict(document)
    for section, take in _SECTIONS.items():
        rows = document.get(section)
        if isinstance(rows, list):
            result[section] = [
                row for each in rows if isinstance(each, dict) for row in take(dict(each), found)
            ]
    exchanges = {(row.get("vhost"), row.get("name")): row for row in result.get("exchanges", [])}
    missing = {
        (row.get("vhost"), row.get("name"))
        for row in document.get("exchanges", [])
        if (row.get("vhost"), row.get("name")) not in exchanges
    }
    if isinstance(document.get("bindings"), list):
        result["bindings"] = [
            binding
            for each in document["bindings"]
            for binding in _binding(dict(each), exchanges, missing, found)
        ]
    _leave_out_permissions(document, result)
    return result, found


def _leave_out_permissions(document: Row, result: Row) -> None:
    """Of users who are left out: the node refuses a document with permissions of somebody whom it does not know."""
    names, kept = (
        {row.get("name") for row in each.get("users") or [] if isinstance(row, dict)}
        for each in (document, result)
    )
    for section in ("permissions", "topic_permissions"):
        rows = result.get(section)
        if isinstance(rows, list):
            result[section] = [row for row in rows if row.get("user") not in names - kept]


def _user(row: Row, found: Findings) -> Iterator[Row]:
    algorithm = row.get("hashing_algorithm")
    if algorithm is None or algorithm in HASHES:
        yield row
    else:
        found.append(
            Finding(
                "user",
                "",
                str(row.get("name")),
                f"hash {algorithm}",
                "left out, with its permissions: add_user",
            )
        )


def _vhost(row: Row, found: Findings) -> Iterator[Row]:
    for place in (row, row.get("metadata")):
        if not isinstance(place, dict):
            continue
        kind = place.get("default_queue_type")
        if kind not in (None, "", "undefined", "classic"):
            told = f"default queue type {kind}"
            found.append(Finding("vhost", str(row.get("name")), "", told, "classic"))
            if place is row:
                del row["default_queue_type"]
            else:
                row["metadata"] = {k: v for k, v in place.items() if k != "default_queue_type"}
    yield row


def _parameter(row: Row, found: Findings) -> Iterator[Row]:
    component, vhost, name = (str(row.get(key)) for key in ("component", "vhost", "name"))
    if component == "shovel":
        # It would begin at once, and take messages out of queues that are being filled.
        found.append(
            Finding("parameter", vhost, name, "a shovel", "left out: set it when all is here")
        )
    elif component not in COMPONENTS:
        found.append(Finding("parameter", vhost, name, f"component {component}", "left out"))
    elif component == "operator_policy":
        value = dict(row.get("value") or {})
        value["definition"] = _definition(
            value.get("definition"), ("operator policy", vhost, name), found
        )
        if value["definition"]:
            yield {**row, "value": value}
    else:
        yield row


def _policy(row: Row, found: Findings) -> Iterator[Row]:
    vhost, name = str(row.get("vhost")), str(row.get("name"))
    row["definition"] = _definition(row.get("definition"), ("policy", vhost, name), found)
    if row.get("apply-to") in ("quorum_queues", "streams"):
        told = f"apply-to {row['apply-to']}"
        found.append(Finding("policy", vhost, name, told, "kept, matches no queue"))
    if row["definition"]:
        yield row


def _definition(definition: Any, whose: tuple[str, str, str], found: Findings) -> Row:
    """A policy's keys that are known here."""
    if not isinstance(definition, dict):
        return {}
    result = {key: definition[key] for key in definition if key in POLICY_KEYS | MIRRORING}
    for key in sorted(definition):
        if key in MIRRORING:
            found.append(Finding(*whose, key, "kept, without effect: there is one node"))
        elif key not in POLICY_KEYS:
            becomes = "left out" if result else "left out, and the policy with it"
            found.append(Finding(*whose, key, becomes))
    return result


def _queue(row: Row, found: Findings) -> Iterator[Row]:
    vhost, name = str(row.get("vhost")), str(row.get("name"))
    arguments = dict(row.get("arguments") or {})
    kind = str(arguments.get("x-queue-type") or row.get("type") or "classic")
    if kind == "stream":
        found.append(Finding("queue", vhost, name, "stream", "left out, with its messages"))
        return
    if kind != "classic":
        found.append(Finding("queue", vhost, name, f"type {kind}", "classic, durable"))
        arguments.pop("x-queue-type", None)
        row.pop("type", None)
    for key in sorted(arguments):
        if key in OTHER_TYPES:
            del arguments[key]
            found.append(Finding("queue", vhost, name, key, "left out"))
        elif key.startswith("x-") and key not in QUEUE_ARGUMENTS:
            found.append(Finding("queue", vhost, name, key, "kept, without effect"))
    row["arguments"] = arguments
    yield row


def _exchange(row: Row, found: Findings) -> Iterator[Row]:
    kind = str(row.get("type"))
    if kind in EXCHANGE_TYPES:
        yield row
    else:
        vhost, name = str(row.get("vhost")), str(row.get("name"))
        found.append(
            Finding("exchange", vhost, name, f"type {kind}", "left out, with its bindings")
        )


def _binding(
    row: Row,
    exchanges: dict[tuple[Any, Any], Row],
    missing: set[tuple[Any, Any]],
    found: Findings,
) -> Iterator[Row]:
    vhost, source = row.get("vhost"), row.get("source")
    destination = (vhost, row.get("destination"))
    if (vhost, source) in missing:
        return  # told with the exchange
    if row.get("destination_type") == "exchange" and destination in missing:
        return
    key = str(row.get("routing_key", ""))
    if (
        exchanges.get((vhost, source), {}).get("type") == "x-consistent-hash"
        and key.isascii()
        and key.isdigit()
        and int(key) > WEIGHT_MAX
    ):
        told = f"weight {key} of {row.get('destination')}"
        found.append(Finding("binding", str(vhost), str(source), told, f"weight {WEIGHT_MAX}"))
        row["routing_key"] = str(WEIGHT_MAX)
    yield row


_SECTIONS: Final[dict[str, Callable[[Row, Findings], Iterator[Row]]]] = {
    "users": _user,
    "vhosts": _vhost,
    "parameters": _parameter,
    "policies": _policy,
    "queues": _queue,
    "exchanges": _exchange,
}


def not_moved(queue: Row, *, is_copy: bool) -> str:
    """Why the messages of a queue (a row of /api/queues) stay there; empty when they may go."""
    arguments, policy = queue.get("arguments") or {}, queue.get("effective_policy_definition") or {}
    kind = queue.get("type", "classic")
    if kind == "stream":
        return "a stream has no equal here"
    if queue.get("exclusive"):
        return "exclusive to a connection there"
    if queue.get("auto_delete"):
        return "auto-delete: a link that is lost would delete it with its messages"
    if "x-expires" in arguments or "expires" in policy:
        return "expires: the queue here would be deleted with its messages before clients come"
    if not is_copy:
        return ""
    for key in ("max-length", "max-length-bytes"):
        if f"x-{key}" in arguments or key in policy:
            return f"{key}: what is given back may be dropped there"
    if kind != "classic":
        return "given back messages count as delivered there: a delivery limit may drop them"
    return ""


def has_ttl(queue: Row) -> bool:
    """Whether a queue (a row of /api/queues) lets its messages expire by itself."""
    policy = queue.get("effective_policy_definition") or {}
    return "x-message-ttl" in (queue.get("arguments") or {}) or "message-ttl" in policy
