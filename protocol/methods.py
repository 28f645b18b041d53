"""Every AMQP method but the hot ones: pamqp's classes and argument specifications, our own reading of them.

A method is an object with ``name`` ('Queue.Declare'), ``ids`` (class and method id) and pamqp's attribute
names. The classes here differ from pamqp's in one thing: they never validate, because pamqp refuses
names that RabbitMQ takes. Decoding and encoding go by pamqp's list of arguments and types, with two
differences: tables are table.py's, whose values keep their types, and a received long string is bytes.

Owns no state. Called by handshake, channels and connection; the broker builds replies from these classes.

Invariants: decode_method raises AmqpError and nothing else, whatever the octets; arguments must fill the
frame exactly. Source: amqp0-9-1.xml through pamqp.commands; texts of RabbitMQ's rabbit_binary_parser
and rabbit_misc:frame_error.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import groupby
from struct import Struct
from typing import ClassVar, Final, Self, cast

from pamqp import commands, common

from burrowmq.protocol.constants import CLASS_ACCESS, FRAME_METHOD
from burrowmq.protocol.errors import CommandInvalid, FrameError
from burrowmq.protocol.framing import erlang_octets, frame
from burrowmq.protocol.table import (
    FieldTable,
    MalformedTable,
    TableLimit,
    decode_table_at,
    encode_table,
)
from burrowmq.records import NamedTuple

_LONG: Final = Struct(">I")
_NUMBERS: Final = {
    "octet": Struct(">B"), "short": Struct(">H"), "long": _LONG, "longlong": Struct(">Q"),
}  # fmt: skip
_NO_TABLE: Final = _LONG.pack(0)


class Step(NamedTuple):
    """One or several arguments that are read together."""

    name: str
    kind: str
    number: Struct | None
    """How a number is packed; None for what is none."""
    bits: tuple[tuple[str, int], ...]
    """Names of bits in a row, each with its place in their octet; () for another argument."""


def _steps(spec: tuple[tuple[str, str], ...]) -> Iterator[Step]:
    """No method of AMQP 0-9-1 has more than eight bits in a row."""
    for is_bit, group in groupby(spec, lambda argument: argument[1] == "bit"):
        if is_bit:
            bits = tuple((name, 1 << place) for place, (name, _) in enumerate(group))
            yield Step("", "bit", None, bits)
        else:
            yield from (Step(name, kind, _NUMBERS.get(kind), ()) for name, kind in group)


class Method:
    """What all methods have in common; a mixin before pamqp's class, whose validation it replaces."""

    name: ClassVar[str]
    index: ClassVar[int]
    arguments_spec: ClassVar[tuple[tuple[str, str], ...]]
    """Argument names with their wire types, in wire order."""
    steps: ClassVar[tuple[Step, ...]]
    """The same as they are read and written: bits in a row are one step."""

    def __init_subclass__(cls) -> None:
        if "arguments_spec" not in vars(cls):
            names: list[str] = getattr(cls, "__slots__", [])
            cls.arguments_spec = tuple((name, getattr(cls, "_" + name)) for name in names)
        cls.steps = tuple(_steps(cls.arguments_spec))

    @property
    def ids(self) -> tuple[int, int]:
        """Class and method id of the method itself; a close has arguments of these names about another one."""
        return self.index >> 16, self.index & 0xFFFF

    def validate(self) -> None:
        """Accept anything: the broker decides what is legal, as RabbitMQ does, and pamqp would refuse more."""


class Connection:
    """Methods of class connection."""

    class Start(Method, commands.Connection.Start):
        """connection.start."""

        @classmethod
        def offer(cls, server_properties: FieldTable, mechanisms: str) -> Self:
            """Build one with a table of ours, which pamqp's annotation does not know and pamqp does not encode."""
            return cls(
                server_properties=cast("common.FieldTable", server_properties),
                mechanisms=mechanisms,
            )

    class StartOk(Method, commands.Connection.StartOk):
        """connection.start-ok."""

        @classmethod
        def answer(cls, mechanism: str, response: bytes, client_properties: FieldTable) -> Self:
            """Build one with a table of ours and octets, as `Start.offer` does."""
            return cls(
                client_properties=cast("common.FieldTable", client_properties),
                mechanism=mechanism,
                response=cast("str", response),
            )

        @property
        def properties(self) -> FieldTable:
            """`client_properties` as decode_method reads it: a table of ours, where pamqp's annotation has its own."""
            return cast("FieldTable", self.client_properties)

        @property
        def credentials(self) -> bytes:
            """`response` as decode_method reads it: octets, where pamqp's annotation has text."""
            return cast("bytes", self.response)

    class Secure(Method, commands.Connection.Secure):
        """connection.secure."""

    class SecureOk(Method, commands.Connection.SecureOk):
        """connection.secure-ok."""

    class Tune(Method, commands.Connection.Tune):
        """connection.tune."""

    class TuneOk(Method, commands.Connection.TuneOk):
        """connection.tune-ok."""

    class Open(Method, commands.Connection.Open):
        """connection.open."""

    class OpenOk(Method, commands.Connection.OpenOk):
        """connection.open-ok."""

    class Close(Method, commands.Connection.Close):
        """connection.close."""

    class CloseOk(Method, commands.Connection.CloseOk):
        """connection.close-ok."""

    class Blocked(Method, commands.Connection.Blocked):
        """connection.blocked."""

    class Unblocked(Method, commands.Connection.Unblocked):
        """connection.unblocked."""

    class UpdateSecret(Method, commands.Connection.UpdateSecret):
        """connection.update-secret."""

    class UpdateSecretOk(Method, commands.Connection.UpdateSecretOk):
        """connection.update-secret-ok."""


class Channel:
    """Methods of class channel."""

    class Open(Method, commands.Channel.Open):
        """channel.open."""

    class OpenOk(Method, commands.Channel.OpenOk):
        """channel.open-ok."""

    class Flow(Method, commands.Channel.Flow):
        """channel.flow."""

    class FlowOk(Method, commands.Channel.FlowOk):
        """channel.flow-ok."""

    class Close(Method, commands.Channel.Close):
        """channel.close."""

    class CloseOk(Method, commands.Channel.CloseOk):
        """channel.close-ok."""


class Exchange:
    """Methods of class exchange."""

    class Declare(Method, commands.Exchange.Declare):
        """exchange.declare."""

    class DeclareOk(Method, commands.Exchange.DeclareOk):
        """exchange.declare-ok."""

    class Delete(Method, commands.Exchange.Delete):
        """exchange.delete."""

    class DeleteOk(Method, commands.Exchange.DeleteOk):
        """exchange.delete-ok."""

    class Bind(Method, commands.Exchange.Bind):
        """exchange.bind."""

    class BindOk(Method, commands.Exchange.BindOk):
        """exchange.bind-ok."""

    class Unbind(Method, commands.Exchange.Unbind):
        """exchange.unbind."""

    class UnbindOk(Method, commands.Exchange.UnbindOk):
        """exchange.unbind-ok."""


class Queue:
    """Methods of class queue."""

    class Declare(Method, commands.Queue.Declare):
        """queue.declare."""

    class DeclareOk(Method, commands.Queue.DeclareOk):
        """queue.declare-ok."""

    class Bind(Method, commands.Queue.Bind):
        """queue.bind."""

    class BindOk(Method, commands.Queue.BindOk):
        """queue.bind-ok."""

    class Purge(Method, commands.Queue.Purge):
        """queue.purge."""

    class PurgeOk(Method, commands.Queue.PurgeOk):
        """queue.purge-ok."""

    class Delete(Method, commands.Queue.Delete):
        """queue.delete."""

    class DeleteOk(Method, commands.Queue.DeleteOk):
        """queue.delete-ok."""

    class Unbind(Method, commands.Queue.Unbind):
        """queue.unbind."""

    class UnbindOk(Method, commands.Queue.UnbindOk):
        """queue.unbind-ok."""


class Basic:
    """Methods of class basic."""

    class Qos(Method, commands.Basic.Qos):
        """basic.qos."""

    class QosOk(Method, commands.Basic.QosOk):
        """basic.qos-ok."""

    class Consume(Method, commands.Basic.Consume):
        """basic.consume."""

    class ConsumeOk(Method, commands.Basic.ConsumeOk):
        """basic.consume-ok."""

    class Cancel(Method, commands.Basic.Cancel):
        """basic.cancel."""

    class CancelOk(Method, commands.Basic.CancelOk):
        """basic.cancel-ok."""

    class Publish(Method, commands.Basic.Publish):
        """basic.publish."""

    class Return(Method, commands.Basic.Return):
        """basic.return."""

    class Deliver(Method, commands.Basic.Deliver):
        """basic.deliver."""

    class Get(Method, commands.Basic.Get):
        """basic.get."""

    class GetOk(Method, commands.Basic.GetOk):
        """basic.get-ok."""

    class GetEmpty(Method, commands.Basic.GetEmpty):
        """basic.get-empty."""

    class Ack(Method, commands.Basic.Ack):
        """basic.ack."""

    class Reject(Method, commands.Basic.Reject):
        """basic.reject."""

    class RecoverAsync(Method, commands.Basic.RecoverAsync):
        """basic.recover-async."""

    class Recover(Method, commands.Basic.Recover):
        """basic.recover."""

    class RecoverOk(Method, commands.Basic.RecoverOk):
        """basic.recover-ok."""

    class Nack(Method, commands.Basic.Nack):
        """basic.nack."""


class Tx:
    """Methods of class tx."""

    class Select(Method, commands.Tx.Select):
        """tx.select."""

    class SelectOk(Method, commands.Tx.SelectOk):
        """tx.select-ok."""

    class Commit(Method, commands.Tx.Commit):
        """tx.commit."""

    class CommitOk(Method, commands.Tx.CommitOk):
        """tx.commit-ok."""

    class Rollback(Method, commands.Tx.Rollback):
        """tx.rollback."""

    class RollbackOk(Method, commands.Tx.RollbackOk):
        """tx.rollback-ok."""


class Confirm:
    """Methods of class confirm."""

    class Select(Method, commands.Confirm.Select):
        """confirm.select."""

    class SelectOk(Method, commands.Confirm.SelectOk):
        """confirm.select-ok."""


class Access:
    """Methods of class access, which pamqp does not know."""

    class Request(Method):
        """access.request: a relic that gets ticket 1."""

        name = "Access.Request"
        index = CLASS_ACCESS << 16 | 10
        arguments_spec = (
            ("realm", "shortstr"),
            ("exclusive", "bit"),
            ("passive", "bit"),
            ("active", "bit"),
            ("write", "bit"),
            ("read", "bit"),
        )

    class RequestOk(Method):
        """access.request-ok."""

        name = "Access.RequestOk"
        index = CLASS_ACCESS << 16 | 11
        arguments_spec = (("ticket", "short"),)

        def __init__(self, ticket: int = 1) -> None:
            self.ticket = ticket


METHODS: Final[dict[int, type[Method]]] = {
    method.index: method
    for group in (Connection, Channel, Access, Exchange, Queue, Basic, Tx, Confirm)
    for method in vars(group).values()
    if isinstance(method, type) and issubclass(method, Method)
}
"""Every method by class id << 16 | method id."""


def arguments(table: FieldTable) -> common.FieldTable:
    """A table of ours as a method's arguments, which pamqp's annotations do not know and pamqp does not encode."""
    return cast("common.FieldTable", table)


class MalformedText(FrameError):
    """A short string that is no UTF-8."""


def method_name(class_id: int, method_id: int) -> str:
    """What people call a method (`queue.declare`); empty for ids that no method has."""
    method = METHODS.get(class_id << 16 | method_id)
    return "" if method is None else method.name.lower()


def decode_method(payload: bytes) -> Method:
    """Decode the payload of a method frame.

    Raises: CommandInvalid for an id that no method has, FrameError for arguments that cannot be read.
    """
    if len(payload) < 4:
        raise FrameError(f"cannot decode {erlang_octets(payload)}")
    index = _LONG.unpack_from(payload, 0)[0]
    kind = METHODS.get(index)
    if kind is None:
        raise CommandInvalid("unimplemented method", index >> 16, index & 0xFFFF)
    method = kind.__new__(kind)
    try:
        _decode_arguments(method, payload)
    except UnicodeDecodeError as error:
        raise MalformedText("Malformed UTF-8 in shortstr") from error
    except TableLimit as error:
        raise FrameError(str(error), *method.ids) from error
    except (struct.error, IndexError, MalformedTable) as error:
        # The text is cut at 255 octets anyway: printing megabytes of numbers first would be a gift.
        text = f"cannot decode {erlang_octets(payload[4:260])}"
        raise FrameError(text, *method.ids) from error
    return method


def _decode_arguments(method: Method, payload: bytes) -> None:
    pos, size = 4, len(payload)
    # RabbitMQ does not look at the names of a publish, which bindings of # and fanouts take whatever they are.
    errors = "surrogateescape" if method.index == Basic.Publish.index else "strict"
    value: object
    for name, kind, number, bits in method.steps:
        if bits:
            octet = payload[pos]
            pos += 1
            for flag, place in bits:
                setattr(method, flag, octet & place != 0)
            continue
        if kind == "shortstr":
            end = pos + 1 + payload[pos]
            if end > size:  # before its text is looked at
                raise IndexError("a string beyond the end of the frame")
            value = payload[pos + 1 : end].decode("utf-8", errors)
        elif number is not None:
            end = pos + number.size
            (value,) = number.unpack_from(payload, pos)
        elif kind == "longstr":
            end = pos + 4 + _LONG.unpack_from(payload, pos)[0]
            value = payload[pos + 4 : end]
        elif payload[pos : pos + 4] == _NO_TABLE:
            value, end = {}, pos + 4
        else:
            value, end = decode_table_at(payload, pos)
        setattr(method, name, value)
        pos = end
    if pos != size:
        raise IndexError("octets after the last argument, or a string beyond the end of the frame")


def encode_method(channel: int, method: Method) -> bytes:
    """A whole method frame."""
    parts = [_LONG.pack(method.index)]
    for name, kind, number, bits in method.steps:
        if bits:
            octet = sum(place for flag, place in bits if getattr(method, flag))
            parts.append(octet.to_bytes())
        elif number is not None:
            parts.append(number.pack(getattr(method, name)))
        else:
            parts.append(_encode_argument(getattr(method, name), kind))
    return frame(FRAME_METHOD, channel, b"".join(parts))


def _encode_argument(value: object, kind: str) -> bytes:
    if kind == "table":
        table: FieldTable = value if isinstance(value, dict) else {}
        return encode_table(table)
    octets = value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogateescape")
    if kind == "shortstr":
        return bytes((len(octets),)) + octets
    return _LONG.pack(len(octets)) + octets
