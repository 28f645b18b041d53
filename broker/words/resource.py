"""What things are called: in texts that clients read, and as rows of the definition store.

RabbitMQ writes `queue 'NAME' in vhost 'VHOST'` in every text; it is formatted here and nowhere else. A durable
thing is one row (kind, key, value): the key is a JSON array, so that no name can be mistaken for two, and AMQP
arguments keep their exact types as the base64 text of the encoded table. Called by auth, vhost, exchange.graph,
definitions and the method handlers. `Rows` writes a vhost's rows, and has the only state here: how many it staged, and
when.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from burrowmq.protocol.errors import NotFound, PreconditionFailed, ResourceLocked
from burrowmq.protocol.table import DecimalValue, decode_table, encode_table, equivalent, type_name
from burrowmq.storage.types import JsonValue

if TYPE_CHECKING:
    from burrowmq.protocol.table import FieldTable, FieldValue

RESERVED_PREFIX = "amq."
"""So begin the names that are the server's to give."""
ResourceKind = Literal["queue", "exchange"]
RowKind = Literal[
    "vhost",
    "user",
    "permission",
    "topic_permission",
    "exchange",
    "queue",
    "binding",
    "parameter",
    "policy",
]
Row: TypeAlias = dict[str, JsonValue]


class DefinitionLog(Protocol):
    """Where durable definitions are staged; they are committed with the current epoch."""

    def put(self, kind: str, key: str, value: Row) -> None:
        """Write or replace a row."""
        ...

    def delete(self, kind: str, key: str) -> None:
        """Remove a row; harmless when there is none."""
        ...


class StagingEngine(Protocol):
    """The part of the storage engine that a vhost uses."""

    @property
    def epoch(self) -> int:
        """Number of the commit that is being collected."""
        ...

    @property
    def definitions(self) -> DefinitionLog:
        """Where durable definitions are staged."""
        ...

    def is_deleting(self, vhost: str, name: str) -> bool:
        """Whether the commit being collected deletes a durable queue of this name."""
        ...

    def is_stored(self, vhost: str, name: str, level: int = 0) -> bool:
        """Whether a start found this level of a queue, and nobody has opened it yet."""
        ...

    def kept_level(self, vhost: str, name: str) -> int:
        """Give the highest level that a start has kept of a queue which it could not open; -1 when there is none."""
        ...

    def owed_copies(self, vhost: str, name: str) -> str:
        """Name a queue that the disk refuses copies of this one's dead letters; empty when there is none."""
        ...


class Rows:
    """Writes a vhost's rows, and knows what a reply waits for: whether something was staged, and is on disk."""

    def __init__(self, engine: StagingEngine) -> None:
        self.engine = engine
        self.staged = 0
        self.durable_epoch = -1

    def put(self, kind: RowKind, key: str, value: Row) -> None:
        """Write or replace a row."""
        self.engine.definitions.put(kind, key, value)
        self._count()

    def delete(self, kind: RowKind, key: str) -> None:
        """Remove a row; harmless when there is none."""
        self.engine.definitions.delete(kind, key)
        self._count()

    def is_unsynced(self) -> bool:
        """Whether some row may not be on disk yet: it is in the commit being collected or the one in flight."""
        return self.durable_epoch >= self.engine.epoch - 1

    def _count(self) -> None:
        self.staged += 1
        self.durable_epoch = self.engine.epoch


def describe(kind: ResourceKind, name: str, vhost: str) -> str:
    """A resource as RabbitMQ's texts name it."""
    return f"{kind} '{name}' in vhost '{vhost}'"


def not_found(kind: ResourceKind, name: str, vhost: str) -> NotFound:
    """The error about a missing queue or exchange."""
    return NotFound(f"no {describe(kind, name, vhost)}")


def locked(queue: str, vhost: str) -> ResourceLocked:
    """The error about a queue that is another connection's."""
    return ResourceLocked(
        f"cannot obtain exclusive access to locked {describe('queue', queue, vhost)}."
        " It could be originally declared on another connection or the exclusive property"
        " value does not match that of the original declaration."
    )


def exchange_argument(
    arguments: FieldTable, key: str, kind: ResourceKind, name: str, vhost: str
) -> str | None:
    """The exchange that an argument of a new queue or exchange names: permissions for it are checked before all else.

    Raises: PreconditionFailed when it is no string.
    """
    if key not in arguments:
        return None
    value = arguments[key]
    if not isinstance(value, str):
        where = describe(kind, name, vhost)
        raise PreconditionFailed(f"invalid type '{type_name(value)}' for arg '{key}' in {where}")
    return value


def row_key(*parts: str) -> str:
    """An unambiguous key of a definition row."""
    # As json.dumps with these separators writes it, which makes an encoder each time: four times as long.
    return f"[{','.join(map(encode_basestring_ascii, parts))}]"


def pack_arguments(arguments: FieldTable) -> str:
    """Arguments as text that keeps every AMQP type."""
    return b64encode(encode_table(arguments)).decode("ascii") if arguments else ""


def unpack_arguments(text: str) -> FieldTable:
    """The arguments that `pack_arguments` made the text from."""
    return decode_table(b64decode(text)) if text else {}


def erlang_term(value: FieldValue) -> str:
    """A value as RabbitMQ's texts print it with ~p."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "undefined"
    if isinstance(value, (str, bytes)):
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        if not text:
            return "<<>>"
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'<<"{escaped}">>'
    if isinstance(value, DecimalValue):
        return f"{{{value.scale},{value.value}}}"
    if isinstance(value, list):
        items = (f"{{{type_name(item)},{erlang_term(item)}}}" for item in value)
        return f"[{','.join(items)}]"
    if isinstance(value, dict):
        fields = (
            f"{{{erlang_term(key)},{type_name(item)},{erlang_term(item)}}}"
            for key, item in value.items()
        )
        return f"[{','.join(fields)}]"
    return str(value)


def check_same_fields(where: str, *fields: tuple[str, bool | str, bool | str]) -> None:
    """Refuse a redeclaration in which one of the (name, received, current) differs.

    Raises: PreconditionFailed, with RabbitMQ's text.
    """
    for name, received, current in fields:
        if received != current:
            raise PreconditionFailed(
                f"inequivalent arg '{name}' for {where}:"
                f" received {_told(received)} but current is {_told(current)}"
            )


def check_same_argument(key: str, current: FieldTable, received: FieldTable, where: str) -> None:
    """Refuse a redeclaration in which one argument means something else.

    Raises: PreconditionFailed, with RabbitMQ's text: types are told only where one side has nothing.
    """
    if key in current and key in received:
        if not equivalent(current[key], received[key]):
            raise PreconditionFailed(
                f"inequivalent arg '{key}' for {where}:"
                f" received {_told(received[key])} but current is {_told(current[key])}"
            )
    elif key in current or key in received:
        raise PreconditionFailed(
            f"inequivalent arg '{key}' for {where}:"
            f" received {_told_typed(received, key)} but current is {_told_typed(current, key)}"
        )


def _told(value: FieldValue) -> str:
    if value is None:
        return "none"
    text = value if isinstance(value, str) else erlang_term(value)
    return f"'{value.decode('utf-8', 'replace') if isinstance(value, bytes) else text}'"


def _told_typed(arguments: FieldTable, key: str) -> str:
    if key not in arguments:
        return "none"
    value = arguments[key]
    told = "'undefined'" if value is None else _told(value)
    return f"the value {told} of type '{type_name(value)}'"


def has_octets(text: str) -> bool:
    """Whether AMQP can carry a text: half a surrogate pair, which JSON can spell, stands for no octets."""
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True
