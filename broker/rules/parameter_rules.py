"""What may stand in a policy, an operator policy, or the limits of a vhost or user: RabbitMQ's rules and texts.

Owns no state. A document that an operator gave (JSON, already parsed) becomes a `Policy` or a mapping of limits, or a
`ValidationFailed` with every objection in RabbitMQ's words and order. Called by `broker.definitions.parameters`.
Nothing here knows vhosts or rows. A policy with keys that classic queues do not know is legal: it is kept, and matches
no queue.

Source: RabbitMQ's rabbit_parameter_validation, rabbit_policy, rabbit_policies, rabbit_mirror_queue_misc,
rabbit_vhost_limit (3.13), and the answers of a live 3.10 node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Protocol, cast

from burrowmq.broker.rules.pattern import BadPattern, compile_pattern
from burrowmq.broker.rules.policy import Policy
from burrowmq.broker.words.resource import has_octets
from burrowmq.broker.words.terms import pair, proplist, term

if TYPE_CHECKING:
    from burrowmq.broker.rules.auth import User
    from burrowmq.broker.rules.policy import ApplyTo, PolicyValue

Document = Mapping[str, object]
Check = Callable[[object], bool]

APPLY_TO: Final = ("queues", "classic_queues", "quorum_queues", "streams", "exchanges", "all")
VHOST_LIMITS: Final = ("max-connections", "max-queues")
USER_LIMITS: Final = ("max-connections", "max-channels")


class ValidationFailed(ValueError):
    """The document was refused; the text is RabbitMQ's, line ends included."""

    def __init__(self, *objections: str) -> None:
        super().__init__("Validation failed\n\n" + "".join(f"{each}\n" for each in objections))
        self.objections = objections


class RefusedValue(ValueError):
    """A refusal that RabbitMQ words without the head line."""


class Component(Protocol):
    """A part of the node that is configured by parameters."""

    def check(self, vhost: str, name: str, value: object, user: User | None) -> None:
        """Refuse a value; `user` is who sets it, None for the operator on the machine. Raises: ValidationFailed."""
        ...

    def changed(self, vhost: str, name: str, value: object) -> None:
        """A parameter was set."""
        ...

    def cleared(self, vhost: str, name: str) -> None:
        """A parameter is gone."""
        ...


def _at_least(least: int) -> Check:
    def check(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and value >= least

    return check


def _within(least: int, most: int) -> Check:
    def check(value: object) -> bool:
        return _at_least(least)(value) and isinstance(value, int) and value <= most

    return check


def _one_of(*known: object) -> Check:
    def check(value: object) -> bool:
        return not isinstance(value, bool | float) and value in known

    return check


def _is_text(value: object) -> bool:
    return isinstance(value, str) and has_octets(value)


def _is_age(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"0*[1-9][0-9]*[YMDhms]", value) is not None


# Key: (test of the value, what the refusal says that it should have been).
_RULES: Final[dict[str, tuple[Check, str]]] = {
    "alternate-exchange": (_is_text, "alternate exchange name"),
    "consumer-timeout": (_at_least(0), "consumer timeout"),
    "dead-letter-exchange": (_is_text, "dead letter exchange name"),
    "dead-letter-routing-key": (_is_text, "dead letter routing key"),
    "dead-letter-strategy": (_one_of("at-most-once", "at-least-once"), "dead letter strategy"),
    "delivery-limit": (_at_least(0), "delivery limit"),
    "expires": (_at_least(1), "queue expiry"),
    "initial-cluster-size": (_at_least(0), "cluster size"),
    "max-age": (_is_age, "max age"),
    "max-in-memory-bytes": (_at_least(0), "maximum memory in bytes"),
    "max-in-memory-length": (_at_least(0), "maximum memory in bytes"),
    "max-length": (_at_least(0), "maximum length"),
    "max-length-bytes": (_at_least(0), "maximum length in bytes"),
    "message-ttl": (_at_least(0), "message TTL"),
    "overflow": (_one_of("drop-head", "reject-publish", "reject-publish-dlx"), "overflow value"),
    "queue-leader-locator": (
        _one_of("client-local", "balanced", "random", "least-leaders"),
        "queue leader locator value",
    ),
    "queue-mode": (_one_of("default", "lazy"), "queue-mode value"),
    "queue-version": (_one_of(1, 2), "queue-version value"),
    "stream-filter-size-bytes": (_within(16, 255), "filter size. Valid range is 16-255"),
    "stream-max-segment-size-bytes": (_within(0, 3_000_000_000), "segment size"),
}
# Mirroring: taken over from RabbitMQ's definitions and without effect on a single node.
_MIRRORING: Final[dict[str, Check]] = {
    "ha-mode": _one_of("all", "exactly", "nodes"),
    "ha-params": lambda value: True,
    "ha-promote-on-failure": _one_of("always", "when-synced"),
    "ha-promote-on-shutdown": _one_of("always", "when-synced"),
    "ha-sync-batch-size": _at_least(1),
    "ha-sync-mode": _one_of("automatic", "manual"),
}
# As little as mirroring has it an effect: one node has no choice.
_LOCATOR: Final = "queue-master-locator"
_is_locator: Final = _one_of("min-masters", "client-local", "random")
OPERATOR_KEYS: Final = frozenset(
    {
        "delivery-limit",
        "expires",
        "ha-mode",
        "ha-params",
        "ha-sync-mode",
        "max-in-memory-bytes",
        "max-in-memory-length",
        "max-length",
        "max-length-bytes",
        "message-ttl",
        "overflow",
        "queue-version",
    }
)
POLICY_KEYS: Final = frozenset(_RULES) | frozenset(_MIRRORING) | {_LOCATOR}


def default_queue_type(value: object, *, has_cluster: bool) -> str:
    """A vhost's default queue type; "" for none.

    Raises: RefusedValue for the types that are not there, as RabbitMQ does for those that it does not know: quorum
    queues and streams are where a cluster is.
    """
    if value in (None, "", "undefined"):
        return ""
    if value == "classic" or (value in ("quorum", "stream") and has_cluster):
        return str(value)
    raise RefusedValue(f"Unsupported default queue type '{value}'")


def make_policy(name: str, document: Document, *, is_operator: bool = False) -> Policy:
    """The policy that a document describes; priority and apply-to may be absent.

    Raises: ValidationFailed.
    """
    pattern, priority = document.get("pattern"), document.get("priority", 0)
    apply_to, definition = document.get("apply-to", "all"), document.get("definition")
    objections = [
        # The last rule's objection comes first, as in RabbitMQ.
        *(f"{key} not found in {name}" for key in _missing(document)),
        *_definition_objections(
            definition, is_operator=is_operator, is_given="definition" in document
        ),
        *_apply_to_objections(apply_to),
        *_pattern_objections(pattern, is_given="pattern" in document),
        *_number_objections("priority", priority),
    ]
    if objections:
        raise ValidationFailed(*objections)
    return Policy(
        name=name,
        pattern=cast("str", pattern),
        definition=dict(cast("Mapping[str, PolicyValue]", definition)),
        apply_to=cast("ApplyTo", apply_to),
        priority=cast("int", priority),
    )


def _missing(document: Document) -> list[str]:
    return [f'Key "{key}"' for key in ("definition", "pattern") if key not in document]


def _definition_objections(value: object, *, is_operator: bool, is_given: bool) -> list[str]:
    if not is_given:
        return []
    if not isinstance(value, dict):
        return [f"definition must be a dictionary: {term(value)}"]
    if not value:
        return ["no policy provided"]
    allowed = OPERATOR_KEYS if is_operator else POLICY_KEYS
    known = sorted(allowed & value.keys())
    if _LOCATOR in known and not _is_locator(value[_LOCATOR]):
        return [f"{term(value[_LOCATOR])} invalid {_LOCATOR} value"]
    for key in known:
        if key in _RULES and not _RULES[key][0](value[key]):
            return [f"{term(value[key])} is not a valid {_RULES[key][1]}"]
    mirroring = [key for key in known if key in _MIRRORING]
    if mirroring and "ha-mode" not in mirroring:
        return [
            "ha-mode must be specified to specify ha-params, ha-sync-mode or ha-promote-on-shutdown"
        ]
    for key in mirroring:
        if not _MIRRORING[key](value[key]):
            return [f"{term(value[key])} is not a valid {key} value"]
    unknown = [(key, value[key]) for key in sorted(value) if key not in allowed]
    return [f"{proplist(unknown)} are not recognised policy settings"] if unknown else []


def _apply_to_objections(value: object) -> list[str]:
    if isinstance(value, str) and value in APPLY_TO:
        return []
    shown = value if isinstance(value, str) else term(value)
    # The two spaces are RabbitMQ's.
    known = "'queues', 'classic_queues',  'quorum_queues', 'streams', 'exchanges', or 'all'"
    return [f"apply-to '{shown}' unrecognised; should be one of: {known}"]


def _pattern_objections(value: object, *, is_given: bool) -> list[str]:
    if not is_given:
        return []
    if not isinstance(value, str):
        return [f"pattern should be a binary but was {term(value)}"]
    try:
        compile_pattern(value)
    except BadPattern as error:
        text = "pattern should be regular expression but is invalid: "
        return [text + pair(str(error), error.place, len(text))]
    return []


def _number_objections(key: str, value: object) -> list[str]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return []
    return [f"{key} should be a number, actually was {term(value)}"]


def vhost_limits(document: object) -> dict[str, int]:
    """The limits of a vhost; a negative one is no limit.

    Raises: ValidationFailed.
    """
    objections = _limit_objections(document, VHOST_LIMITS, "limits")
    if objections:
        raise ValidationFailed(*objections)
    return dict(cast("Mapping[str, int]", document))


def user_limits(document: object) -> dict[str, int]:
    """The limits of a user; a negative one is no limit.

    Raises: RefusedValue.
    """
    objections = _limit_objections(document, USER_LIMITS, "user-limits")
    if objections:
        raise RefusedValue(objections[0])
    return dict(cast("Mapping[str, int]", document))


def _limit_objections(document: object, known: tuple[str, ...], name: str) -> list[str]:
    if document == []:
        document = {}  # how RabbitMQ exports an empty object
    if not isinstance(document, dict):
        return [f"{name} not a list {term(document)}"]
    unknown = [(key, document[key]) for key in sorted(document) if key not in known]
    if unknown:
        return [f"Unrecognised terms {proplist(unknown)} in {name}"]
    return [
        f"{key} should be a number, actually was {term(document[key])}"
        for key in known
        if key in document and not _at_least(-(1 << 62))(document[key])
    ]
