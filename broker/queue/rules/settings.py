"""What a queue's x-arguments and policy come to: validation, equivalence, and the frozen `Settings`.

Three questions are answered here and nowhere else: may a new queue have these arguments (`validate`), does a
redeclaration mean the same queue (`check_equivalent`), and what is in force (`compute`). Owns no state. Called by
`broker.vhost.vhost` on declare and policy changes; `Settings` is read by the queue.

Rules: a limit given both ways is the lower of the two; for dead-lettering, overflow, mode and version the argument
wins, but for a quorum queue's overflow and expiry the policy; priority, single active consumer and type are arguments
only. Keys of other queue types are refused, unknown keys are accepted and kept.

Source: RabbitMQ's rabbit_amqqueue:declare_args, check_arguments, assert_args_equivalence; rabbit_queue_type_util.
"""

from __future__ import annotations

from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Final, Literal

from burrowmq.broker.words.resource import (
    check_same_argument,
    describe,
    exchange_argument,
    has_octets,
)
from burrowmq.protocol import table
from burrowmq.protocol.errors import PreconditionFailed
from burrowmq.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from burrowmq.broker.rules.policy import PolicyValue
    from burrowmq.protocol.table import FieldTable, FieldValue

    Check = Callable[[FieldValue, FieldTable], str | None]

Overflow = Literal["drop-head", "reject-publish", "reject-publish-dlx"]
QueueMode = Literal["default", "lazy"]

EXPIRY_MAX_MS: Final = 315_360_000_000  # ten years
LIMIT_MAX: Final = 1 << 62
"""What a larger number of a policy comes to: RabbitMQ takes any, but a deadline, so much from now, has 64 bits."""
AGE_MAX_MS: Final = LIMIT_MAX // 1_000_000  # JetStream counts nanoseconds
PRIORITY_MAX: Final = 255
OVERFLOWS: Final[tuple[Overflow, ...]] = ("drop-head", "reject-publish", "reject-publish-dlx")
QUEUE_VERSIONS: Final = (1, 2)
"""Of a queue's files: 1 embeds small messages in its index, 2 has a store of its own for them."""
QUEUE_MODES: Final[tuple[QueueMode, ...]] = ("default", "lazy")
AGE_UNITS_S: Final = {
    "Y": 365 * 86_400,
    "M": 30 * 86_400,
    "D": 86_400,
    "h": 3_600,
    "m": 60,
    "s": 1,
}
FOREIGN_KEYS: Final = (
    "x-max-age",
    "x-stream-max-segment-size-bytes",
    "x-initial-cluster-size",
    "x-queue-leader-locator",
    "x-max-in-memory-length",
    "x-max-in-memory-bytes",
    "x-delivery-limit",
    "x-quorum-initial-group-size",
    "x-dead-letter-strategy",
)
EQUIVALENCE_KEYS: Final = (
    "x-expires",
    "x-message-ttl",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-priority",
    "x-overflow",
    "x-queue-mode",
    "x-queue-version",
    "x-single-active-consumer",
    "x-queue-type",
    "x-queue-master-locator",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is in force for one queue; None means no limit or not set."""

    message_ttl_ms: int | None = None
    expires_ms: int | None = None
    max_length: int | None = None
    max_length_bytes: int | None = None
    overflow: Overflow = "drop-head"
    dead_letter_exchange: str | None = None
    dead_letter_routing_key: bytes | None = None
    max_priority: int | None = None
    mode: QueueMode = "default"
    version: int = 2
    single_active_consumer: bool = False
    consumer_timeout_ms: int | None = None
    delivery_limit: int | None = None
    is_at_least_once: bool = False
    """Whether dead letters are to be stored before their originals go; both of quorum queues only."""
    max_age_ms: int | None = None
    """What is older goes from a stream."""
    initial_cluster_size: int | None = None
    """Servers that are to keep a new stream."""

    @property
    def is_limited(self) -> bool:
        """Whether there is any length limit."""
        return self.max_length is not None or self.max_length_bytes is not None

    def have_room_for(self, count: int, size: int) -> bool:
        """Whether so many messages, of so many bytes, are within the length limits."""
        most, most_bytes = self.max_length, self.max_length_bytes
        return (most is None or count <= most) and (most_bytes is None or size <= most_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDeclaration:
    """A queue as asked for; `owner` is the session that an exclusive queue belongs to.

    `default_version` is the one that a queue from a row was declared under, None for a new one. `former_arguments` are
    of a quorum queue that was, or was asked for as, a classic one: who declares it with them finds it.
    """

    name: str
    durable: bool = False
    auto_delete: bool = False
    owner: object | None = None
    arguments: FieldTable = field(default_factory=dict)
    default_version: int | None = None
    former_arguments: FieldTable | None = None


def _integer(value: FieldValue, arguments: FieldTable) -> str | None:
    if table.is_integer(value):
        return None
    return f'"expected integer, got {table.type_name(value)}"'


def not_negative(value: FieldValue, arguments: FieldTable) -> str | None:
    """What is wrong with a value that is to be a number, and not below zero; None when nothing is."""
    wrong = _integer(value, arguments)
    if wrong is None and isinstance(value, int) and value < 0:
        return f"{{value_negative,{value}}}"
    return wrong


def _milliseconds(value: FieldValue, arguments: FieldTable) -> str | None:
    wrong = not_negative(value, arguments)
    if wrong is None and isinstance(value, int) and value > EXPIRY_MAX_MS:
        return f"{{value_too_large,{value}}}"
    return wrong


def _expires(value: FieldValue, arguments: FieldTable) -> str | None:
    if table.is_integer(value) and value == 0:
        return "{value_zero,0}"
    return _milliseconds(value, arguments)


def _priority(value: FieldValue, arguments: FieldTable) -> str | None:
    wrong = not_negative(value, arguments)
    if wrong is None and isinstance(value, int) and value > PRIORITY_MAX:
        return f"{{max_value_exceeded,{value}}}"
    return wrong


def _dead_letter_routing_key(value: FieldValue, arguments: FieldTable) -> str | None:
    if not isinstance(value, str):
        return _unacceptable(value)
    if arguments.get("x-dead-letter-exchange") is None:
        return "routing_key_but_no_dlx_defined"
    return None


def _overflow(value: FieldValue, arguments: FieldTable) -> str | None:
    if not isinstance(value, str):
        return _unacceptable(value)
    return None if value in OVERFLOWS else "invalid_overflow"


def _queue_mode(value: FieldValue, arguments: FieldTable) -> str | None:
    if not isinstance(value, str):
        return _unacceptable(value)
    return None if value in QUEUE_MODES else f"\"unsupported queue mode '{value}'\""


def _queue_version(value: FieldValue, arguments: FieldTable) -> str | None:
    wrong = not_negative(value, arguments)
    if wrong is None and isinstance(value, int) and value not in QUEUE_VERSIONS:
        return f"\"unsupported queue version '{value}'\""
    return wrong


def _boolean(value: FieldValue, arguments: FieldTable) -> str | None:
    return None if isinstance(value, bool) else _unacceptable(value)


def _queue_type(value: FieldValue, arguments: FieldTable) -> str | None:
    if not isinstance(value, str):
        return _unacceptable(value)
    # RabbitMQ has quorum and stream queues as well; refused rather than stored as something else.
    return None if value == "classic" else f"\"unsupported queue type '{value}'\""


def _unacceptable(value: FieldValue) -> str:
    return f"{{unacceptable_type,{table.type_name(value)}}}"


# In RabbitMQ's order: with several bad arguments the first here is the one reported.
_CHECKS: Final[dict[str, Check]] = {
    "x-expires": _expires,
    "x-message-ttl": _milliseconds,
    "x-dead-letter-routing-key": _dead_letter_routing_key,
    "x-max-length": not_negative,
    "x-max-length-bytes": not_negative,
    "x-max-priority": _priority,
    "x-overflow": _overflow,
    "x-queue-mode": _queue_mode,
    "x-queue-version": _queue_version,
    "x-single-active-consumer": _boolean,
    "x-queue-type": _queue_type,
}


def dead_letter_exchange(arguments: FieldTable, queue: str, vhost: str) -> str | None:
    """The DLX argument of a new queue, see `exchange_argument`."""
    return exchange_argument(arguments, "x-dead-letter-exchange", "queue", queue, vhost)


def validate(arguments: FieldTable, queue: str, vhost: str) -> None:
    """Refuse arguments that a new classic queue may not have.

    Raises: PreconditionFailed.
    """
    if not arguments:
        return
    where = describe("queue", queue, vhost)
    dead_letter_exchange(arguments, queue, vhost)
    check_arguments(arguments, where)
    for key in FOREIGN_KEYS:
        if key in arguments:
            raise PreconditionFailed(
                f"invalid arg '{key}' for {where} of queue type rabbit_classic_queue"
            )


def check_arguments(arguments: FieldTable, where: str) -> None:
    """Refuse values that no queue may have. Raises: PreconditionFailed."""
    for key, check in _CHECKS.items():
        if key in arguments:
            wrong = check(arguments[key], arguments)
            if wrong is not None:
                raise PreconditionFailed(f"invalid arg '{key}' for {where}: {wrong}")


def check_equivalent(current: FieldTable, received: FieldTable, queue: str, vhost: str) -> None:
    """Refuse a redeclaration whose arguments mean another queue.

    Raises: PreconditionFailed.
    """
    where = describe("queue", queue, vhost)
    for key in EQUIVALENCE_KEYS:
        classic = (None, "classic")
        if key == "x-queue-type" and current.get(key) in classic and received.get(key) in classic:
            continue  # said or not, the type is classic
        check_same_argument(key, current, received, where)


def are_equivalent(current: FieldTable, received: FieldTable) -> bool:
    """Whether a redeclaration means the same queue."""
    try:
        check_equivalent(current, received, "", "")
    except PreconditionFailed:
        return False
    return True


def with_default_type(
    arguments: FieldTable, default_type: str, *, is_replicable: bool = True
) -> FieldTable:
    """The arguments of a declaration in a vhost with a default queue type: the type is one of them, said or not.

    What is not durable, or goes with its connection or its last consumer, is no quorum queue: it is a classic one.
    """
    if not default_type or "x-queue-type" in arguments:
        return arguments
    return {**arguments, "x-queue-type": default_type if is_replicable else "classic"}


def compute(
    arguments: FieldTable, policy: Mapping[str, PolicyValue], default_version: int = 2
) -> Settings:
    """What is in force, of validated arguments and the effective policy definition."""
    if not arguments and not policy:
        return _plain(default_version)
    is_quorum = arguments.get("x-queue-type") == "quorum"
    if arguments.get("x-queue-type") == "stream":
        return _of_stream(arguments, policy)
    overflow = _text(arguments, policy, "overflow")
    expires_ms = _lower(arguments, policy, "expires")
    if is_quorum:  # RabbitMQ: of a quorum queue's, the policy's word holds for these two
        overflow = _text({}, policy, "overflow") or overflow
        expires_ms = _lower({}, policy, "expires") or expires_ms
    mode = _text(arguments, policy, "queue-mode")
    routing_key = _text(arguments, policy, "dead-letter-routing-key")
    version = arguments.get("x-queue-version", policy.get("queue-version"))
    priority = arguments.get("x-max-priority")
    return Settings(
        message_ttl_ms=_lower(arguments, policy, "message-ttl"),
        expires_ms=expires_ms,
        max_length=_lower(arguments, policy, "max-length"),
        max_length_bytes=_lower(arguments, policy, "max-length-bytes"),
        overflow=next((known for known in OVERFLOWS if known == overflow), "drop-head"),
        dead_letter_exchange=_text(arguments, policy, "dead-letter-exchange"),
        dead_letter_routing_key=(
            None if routing_key is None else routing_key.encode("utf-8", "surrogateescape")
        ),
        max_priority=max(1, int(priority)) if isinstance(priority, int) else None,
        mode=next((known for known in QUEUE_MODES if known == mode), "default"),
        version=_version(version, default_version),
        single_active_consumer=arguments.get("x-single-active-consumer") is True,
        consumer_timeout_ms=_lower(arguments, policy, "consumer-timeout"),
        delivery_limit=_lower(arguments, policy, "delivery-limit"),
        is_at_least_once=_text(arguments, policy, "dead-letter-strategy") == "at-least-once",
    )


@cache
def _plain(version: int) -> Settings:
    """Those of a queue of which nothing is said: there are as many of them as versions."""
    return Settings(version=version)


def _of_stream(arguments: FieldTable, policy: Mapping[str, PolicyValue]) -> Settings:
    """RabbitMQ: of a stream's, the policy's word holds for all."""

    def word(key: str) -> FieldValue | PolicyValue | None:
        return policy.get(key, arguments.get("x-" + key))

    size, age, servers = map(word, ("max-length-bytes", "max-age", "initial-cluster-size"))
    return Settings(
        max_length_bytes=min(int(size), LIMIT_MAX) if isinstance(size, int) else None,
        max_age_ms=age_ms(age) if isinstance(age, str) else None,
        initial_cluster_size=int(servers) if isinstance(servers, int) else None,
        consumer_timeout_ms=_lower(arguments, policy, "consumer-timeout"),
    )


def age_ms(text: str) -> int | None:
    """An age as RabbitMQ writes it, `7D` or `30m`, in milliseconds; None for what is none."""
    number, unit = text[:-1], text[-1:]
    if not (number.isascii() and number.isdecimal()) or unit not in AGE_UNITS_S:
        return None
    value = int(number.lstrip("0")[:20] or 0)  # with so many digits it is above the maximum anyway
    return min(value * AGE_UNITS_S[unit] * 1000, AGE_MAX_MS) or None


def _version(wanted: FieldValue | PolicyValue, default: int) -> int:
    """The version in force; arguments and policies were validated."""
    return int(wanted) if isinstance(wanted, int) else default


def _lower(arguments: FieldTable, policy: Mapping[str, PolicyValue], key: str) -> int | None:
    """The lower of argument and policy, as far as they are there."""
    given = (arguments.get("x-" + key), policy.get(key))
    limits = [
        min(int(value), LIMIT_MAX)
        for value in given
        if isinstance(value, int) and not isinstance(value, bool)
    ]
    return min(limits, default=None)


def _text(arguments: FieldTable, policy: Mapping[str, PolicyValue], key: str) -> str | None:
    """The argument, else the policy's word."""
    value = arguments.get("x-" + key, policy.get(key))
    # Such a policy may have been stored before it was refused.
    return value if isinstance(value, str) and has_octets(value) else None
