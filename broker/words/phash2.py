"""Erlang's `phash2` of the terms that RabbitMQ's hash exchanges take: what a hash exchange has to agree with.

A term is given as Python has it: bytes a binary, `Atom` an atom, a tuple a tuple, a list a proper list, integers,
floats and booleans themselves. `field_term` makes the term that RabbitMQ has of a header's value with its type. Owns no
state. Called by the hash exchanges for each message whose like they have not met.

Sources: erts/emulator/beam/utils.c (make_hash2), atom.c (atom_hash); RabbitMQ's rabbit_binary_parser for the types.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, TypeAlias

from burrowmq.protocol import table
from burrowmq.protocol.codec import hash_octets
from burrowmq.protocol.codec._hash_py import GOLDEN, mix
from burrowmq.protocol.table import DecimalValue

if TYPE_CHECKING:
    from burrowmq.protocol.table import FieldTable, FieldValue


class Atom(str):
    """An Erlang atom."""

    __slots__ = ()


Term: TypeAlias = "bytes | Atom | bool | int | float | tuple[Term, ...] | list[Term]"

UNDEFINED: Final = Atom("undefined")
RANGE: Final = 1 << 27
_MASK32: Final = (1 << 32) - 1
_DOUBLE: Final = Struct("<d")
_NIL: Final = 2
_NIL_ALONE: Final = 3468870702
_SMALL: Final = 1 << 27


def phash2(term: Term) -> int:
    """As `erlang:phash2/1`: 27 bits."""
    return _hash(term, 0) & RANGE - 1


def seed_of_octets(kind: Atom | None = None) -> int:
    """What `hash_octets` has to begin with for a binary; with a kind, for one in a pair behind that atom."""
    so_far = 0 if kind is None else _atom(kind, _word(2, _of(9), 0))
    return _of(13) + so_far & _MASK32


def _of(number: int) -> int:
    """The constant of that number."""
    return GOLDEN * number & _MASK32


def _word(word: int, constant: int, so_far: int) -> int:
    return _words(word, 0, constant, so_far)


def _words(first: int, second: int, constant: int, so_far: int) -> int:
    return mix(constant + first & _MASK32, constant + second & _MASK32, so_far)[2]


def _hash(term: Term, so_far: int) -> int:
    if isinstance(term, bytes):
        return hash_octets(term, _of(13) + so_far & _MASK32)
    if isinstance(term, bool):
        return _atom("true" if term else "false", so_far)
    if isinstance(term, str):
        return _atom(term, so_far)
    if isinstance(term, int):
        return _integer(term, so_far)
    if isinstance(term, float):
        octets = _DOUBLE.pack(term or 0.0)
        low, high = (int.from_bytes(octets[at : at + 4], "little") for at in (0, 4))
        return _words(high, low, _of(12), so_far)
    if isinstance(term, tuple):
        so_far = _word(len(term), _of(9), so_far)
        for each in term:
            so_far = _hash(each, so_far)
        return so_far
    # No list that comes here has small numbers, which Erlang would take four at a time.
    for each in term:
        so_far = _hash(each, so_far)
    return _word(_NIL, _of(2), so_far) if so_far else _NIL_ALONE


def _atom(name: str, so_far: int) -> int:
    found = 0
    for octet in name.encode():
        found = (found << 4) + octet
        over = found & 0xF0000000
        found ^= over >> 24 ^ over
    return _word(found, _of(3), so_far) if so_far else found


def _integer(number: int, so_far: int) -> int:
    if -_SMALL <= number < _SMALL:
        if number < 0:
            so_far = _word(-number, GOLDEN, so_far)
        return _word(number & _MASK32, GOLDEN, so_far)
    constant = _of(10) if number < 0 else _of(11)
    rest = abs(number)
    while True:
        so_far = _words(rest & _MASK32, rest >> 32 & _MASK32, constant, so_far)
        rest >>= 64
        if not rest:
            return so_far


def field_term(value: FieldValue) -> tuple[Term, ...]:
    """The type and value of a header as RabbitMQ has them."""
    return Atom(table.type_name(value)), _value_term(value)


def _value_term(value: FieldValue) -> Term:
    if value is None:
        return UNDEFINED
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, dict):
        return _table_term(value)
    if isinstance(value, list):
        return [field_term(each) for each in value]
    if isinstance(value, DecimalValue):
        return value.scale, value.value
    if isinstance(value, bool):
        return value
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        return int(value)
    return bytes(value)


def _table_term(fields: FieldTable) -> Term:
    return [
        (key.encode("utf-8", "surrogateescape"), *field_term(value))
        for key, value in fields.items()
    ]
