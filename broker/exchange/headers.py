"""The headers exchange: binding arguments against message headers.

`x-match` is `all` (the default), `any`, `all-with-x` or `any-with-x`, checked when the binding is made. `all` and
`any` skip every binding argument whose name starts with `x-`; the `-with-x` kinds skip only `x-match` itself. A
void value asks for the header to be present, whatever it is. Otherwise values are compared without their AMQP type
(int32 1 equals int64 1, text equals binary, an empty table an empty array), except that booleans are not numbers and
an integer never equals a floating-point number (RabbitMQ 3.13). Timestamps compare as their seconds, as they did
before 3.13 (there they can never match).

Each binding is compiled once into (any?, [(header, wanted)]); a match costs O(bindings). Routes through this exchange
are remembered by the octets of those headers that a binding asks for (`header_names`), never by routing key alone.

Source: RabbitMQ's rabbit_exchange_type_headers.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Unpack

from burrowmq.broker.exchange.base import Exchange, Properties
from burrowmq.broker.words.resource import erlang_term
from burrowmq.protocol import table
from burrowmq.protocol.errors import PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from burrowmq.broker.exchange.base import Look
    from burrowmq.broker.exchange.binding import Binding, Destination
    from burrowmq.protocol.table import FieldTable, FieldValue

KINDS = ("all", "any", "all-with-x", "any-with-x")


def comparable(value: FieldValue) -> object:
    """A value without its AMQP type, so that equality of the results is the exchange's equality."""
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return ("float", float(value))
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if value is None:
        return ("void",)
    if isinstance(value, (list, dict)):
        if not value:
            # RabbitMQ has the same empty list for both; below the top it keeps types.
            return ("empty",)
        return (table.type_name(value), table.encode_value(value))
    return value


class HeadersMatch:
    """One binding's compiled question."""

    __slots__ = ("is_any", "wanted")

    def __init__(self, arguments: FieldTable) -> None:
        kind = str(arguments.get("x-match", "all"))
        self.is_any = kind.startswith("any")
        skip_x = not kind.endswith("-with-x")
        # None stands for "present, any value"; comparable() is never None for a present value.
        self.wanted: list[tuple[str, object]] = [
            (key, None if value is None else comparable(value))
            for key, value in arguments.items()
            if key != "x-match" and not (skip_x and key.startswith("x-"))
        ]

    def matches(self, headers: dict[str, object]) -> bool:
        """Answer for headers already made comparable."""
        if self.is_any:
            return any(
                key in headers and (value is None or headers[key] == value)
                for key, value in self.wanted
            )
        return all(
            key in headers and (value is None or headers[key] == value)
            for key, value in self.wanted
        )


class HeadersExchange(Exchange):
    """Routes by message headers."""

    type = "headers"
    needs_headers = True
    ignores_keys = True

    def __init__(self, name: str, **properties: Unpack[Properties]) -> None:
        super().__init__(name, **properties)
        self._compiled: dict[Binding, HeadersMatch] = {}
        self._asked: Counter[str] = Counter()

    @property
    def header_names(self) -> Collection[str]:
        """Names of the headers that any binding asks for."""
        return self._asked

    def validate(self, routing_key: bytes, arguments: FieldTable) -> None:
        """Refuse an unknown x-match."""
        if "x-match" not in arguments:
            return
        value = arguments["x-match"]
        type_name = table.type_name(value)
        if type_name != "longstr":
            raise PreconditionFailed(
                f"Invalid x-match field type {type_name} (value {erlang_term(value)});"
                " expected longstr"
            )
        if value not in KINDS:
            raise PreconditionFailed(
                f"Invalid x-match field value {erlang_term(value)};"
                " expected all, any, all-with-x, or any-with-x"
            )

    def match(self, routing_key: bytes, look: Look | None) -> Iterable[Destination]:
        """The destinations whose arguments the message's headers satisfy."""
        if not self._compiled:
            return ()
        found = (look().headers if look is not None else None) or {}
        known = {key: comparable(value) for key, value in found.items()}
        return [
            binding.destination
            for binding, question in self._compiled.items()
            if question.matches(known)
        ]

    def _index(self, binding: Binding) -> None:
        question = self._compiled[binding] = HeadersMatch(binding.arguments)
        self._asked.update(key for key, _ in question.wanted)

    def _unindex(self, binding: Binding) -> None:
        question = self._compiled.pop(binding)
        asked = self._asked
        for key, _ in question.wanted:
            asked[key] -= 1
            if not asked[key]:
                del asked[key]
