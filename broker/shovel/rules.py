"""What may stand in a shovel's parameter: RabbitMQ's rules and texts.

Owns no state. Called by `shovels` before a parameter is kept. Objections come in RabbitMQ's order: about both ends
first, then key by key from the last to the first. Where the plugin crashes instead of refusing (arguments that are no
object, protocols that nobody knows), the texts are ours.

Source: rabbit_shovel_parameters, rabbit_amqp091_shovel; the answers of a live 3.10 node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from burrowmq.broker.link.uri import BadUri, parse
from burrowmq.broker.rules.parameter_rules import ValidationFailed
from burrowmq.broker.words.terms import LINE_COLUMNS, proplist, term
from burrowmq.protocol.table import MalformedTable, from_json

ACK_MODES: Final = ("no-ack", "on-publish", "on-confirm")
DEFAULT_VHOST: Final = "/"
SHORT_MAX: Final = 255
"""Octets of a name in AMQP."""
NEVER, QUEUE_LENGTH = "never", "queue-length"
PROPERTIES: Final = {
    "content_type": str,
    "content_encoding": str,
    "delivery_mode": int,
    "priority": int,
    "correlation_id": str,
    "reply_to": str,
    "expiration": str,
    "message_id": str,
    "timestamp": int,
    "type": str,
    "user_id": str,
    "app_id": str,
    "cluster_id": str,
}
MayEnter = Callable[[str], bool]
Check = Callable[[str, object], list[str]]


def validate(name: str, value: object, user_name: str, may_enter: MayEnter) -> None:
    """Refuse what no shovel can work by; `may_enter` says whether the user may enter a vhost of this node.

    Raises: ValidationFailed.
    """
    if value == []:
        value = {}  # how RabbitMQ exports an empty object
    if not isinstance(value, dict):
        raise ValidationFailed(f"{name} should be a JSON object, actually was {term(value)}")

    def uri(key: str, given: object) -> list[str]:
        return _uri_objections(key, given, user_name, may_enter)

    checks: dict[str, Check] = {
        "internal": lambda _key, _given: [],
        "internal_owner": lambda _key, _given: [],
        "reconnect-delay": _number,
        "ack-mode": _ack_mode,
        "src-protocol": _protocol,
        "dest-protocol": _protocol,
        "src-uri": uri,
        "src-exchange": _binary,
        "src-exchange-key": _binary,
        "src-queue": _binary,
        "src-queue-args": _table,
        "src-consumer-args": _table,
        "prefetch-count": _number,
        "src-prefetch-count": _number,
        "delete-after": _delete_after,
        "src-delete-after": _delete_after,
        "dest-uri": uri,
        "dest-exchange": _binary,
        "dest-exchange-key": _binary,
        "dest-queue": _binary,
        "dest-queue-args": _table,
        "add-forward-headers": _boolean,
        "add-timestamp-header": _boolean,
        "dest-add-forward-headers": _boolean,
        "dest-add-timestamp-header": _boolean,
        "publish-properties": _properties,
        "dest-publish-properties": _properties,
    }
    objections = [*_ends(value), *_by_key(name, value, checks, ("src-uri", "dest-uri"))]
    if objections:
        raise ValidationFailed(*objections)


def _ends(value: Mapping[str, object]) -> list[str]:
    """What the source says, and what the destination says, taken together."""
    found = []
    has_queue, has_exchange = "src-queue" in value, "src-exchange" in value
    if not has_queue and not has_exchange:
        found.append("Must specify 'src-exchange' or 'src-queue'")
    if has_queue and has_exchange:
        found.append("Cannot specify 'src-exchange' and 'src-queue'")
    limit = value.get("src-delete-after", value.get("delete-after"))
    if value.get("ack-mode") == "no-ack" and _is_number(limit):
        found.append("Cannot specify 'no-ack' and numerical 'delete-after'")
    if "dest-queue" in value and "dest-exchange" in value:
        found.append("Cannot specify 'dest-exchange' and 'dest-queue'")
    return found


def _by_key(
    name: str, value: Mapping[str, object], checks: Mapping[str, Check], needed: tuple[str, ...]
) -> list[str]:
    unknown = [(key, value[key]) for key in sorted(value) if key not in checks]
    found = [f"Unrecognised terms {proplist(unknown)} in {name}"] if unknown else []
    for key in reversed(list(checks)):
        if key in value:
            found += checks[key](key, value[key])
        elif key in needed:
            found.append(f'Key "{key}" not found in {name}')
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _number(key: str, given: object) -> list[str]:
    return [] if _is_number(given) else [f"{key} should be a number, actually was {term(given)}"]


def _binary(key: str, given: object) -> list[str]:
    if isinstance(given, str):
        octets = _octets(given)
        if octets is None:
            return [f"{key} is no text that can be sent: {term(given)}"]
        if len(octets) > SHORT_MAX:
            return [f"{key} is longer than {SHORT_MAX} octets"]
        return []
    return [f"{key} should be binary, actually was {term(given)}"]


def _octets(text: str) -> bytes | None:
    """As AMQP has it; None for halves of surrogate pairs, which JSON lets through and no octets stand for."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return None


def _boolean(key: str, given: object) -> list[str]:
    if isinstance(given, bool):
        return []
    return [f"{key} should be boolean, actually was {term(given)}"]


def _ack_mode(key: str, given: object) -> list[str]:
    if not isinstance(given, str):
        return _binary(key, given)
    if given in ACK_MODES:
        return []
    return [f"{key} should be one of {term(list(ACK_MODES))}, actually was {term(given)}"]


def _protocol(key: str, given: object) -> list[str]:
    if given == "amqp091":
        return []
    return [
        f"{key} should be amqp091, the only protocol of shovels here, actually was {term(given)}"
    ]


def _table(key: str, given: object) -> list[str]:
    if given == []:
        return []
    if not isinstance(given, dict):
        return [f"{key} should be a JSON object, actually was {term(given)}"]
    try:
        from_json(given)
    except MalformedTable as error:
        return [f"{key} cannot be sent: {error}"]
    return []


def _delete_after(key: str, given: object) -> list[str]:
    if given in (NEVER, QUEUE_LENGTH):
        return []
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return []
    wanted = 'a number greater than or equal to 0, "never" or "queue-length"'
    return [f"{key} should be {wanted}, actually was {term(given)}"]


def _properties(key: str, given: object) -> list[str]:
    if given == []:
        return []
    if not isinstance(given, dict):
        return [f"{key} not a list {term(given)}"]
    checks: dict[str, Check] = {
        name: _binary if kind is str else _number for name, kind in PROPERTIES.items()
    }
    found = _by_key(key, given, checks, ())
    for name, least, most in (
        ("delivery_mode", 0, 255),
        ("priority", 0, 255),
        ("timestamp", 0, (1 << 64) - 1),
    ):
        number = given.get(name, 0)
        if _is_number(number) and not (isinstance(number, int) and least <= number <= most):
            found.append(f"{name} should be {least} to {most}, actually was {term(number)}")
    return found


def _uri_objections(key: str, given: object, user_name: str, may_enter: MayEnter) -> list[str]:
    """What is wrong with a URI, or with the first wrong one of a list."""
    uris = given if isinstance(given, list) else [given]
    for uri in uris:
        if not isinstance(uri, str):
            return [f"{key} should be list, actually was {term(uri)}"]
        if _octets(uri) is None:
            return [f"{key} is no text that can be sent: {term(uri)}"]
        try:
            target = parse(uri, DEFAULT_VHOST)
        except BadUri as bad:
            start = f'"{uri}" not a valid URI: '
            flat = f'{{{bad.term},"{uri}"}}'
            if len(start) + len(flat) > LINE_COLUMNS:
                flat = f'{{{bad.term},\n{" " * (len(start) + 1)}"{uri}"}}'
            return [start + flat]
        if len(_octets(target.vhost) or b"") > SHORT_MAX:
            return [f"{key} has a virtual host of more than {SHORT_MAX} octets"]
        if target.is_local and not may_enter(target.vhost):
            return [f'user "{user_name}" may not connect to vhost "{target.vhost}"']
    return []
