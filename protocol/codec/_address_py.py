"""Addresses: exchange and routing key, each behind its length octet (the compiled codec has the same names).

State owned: the addresses that are in use, so that messages share them. One table for the process, since publishers use
each other's. Called by `_codec_py` for each address that differs from the last.

Source: AMQP 0-9-1 section 4.2.5.3.
"""

from __future__ import annotations

from typing import Final

from burrowmq.protocol.constants import KNOWN_ADDRESSES

_known: Final[dict[bytes, bytes]] = {}


def split_address(address: bytes) -> tuple[bytes, bytes]:
    """Exchange and routing key of an address."""
    key = 1 + address[0]
    return address[1:key], address[key + 1 : key + 1 + address[key]]


def join_address(exchange: bytes, routing_key: bytes) -> bytes:
    """An address: both names, each behind its length octet."""
    return b"".join((bytes((len(exchange),)), exchange, bytes((len(routing_key),)), routing_key))


def shared(address: bytes) -> bytes:
    """The address that equals this one and is known, from now on this one."""
    known = _known.get(address)
    if known is None:
        if len(_known) >= KNOWN_ADDRESSES:
            _known.clear()
        known = _known[address] = address
    return known


def is_sound(names: bytes) -> bool:
    """Whether two short strings fill the octets exactly and are UTF-8."""
    size = len(names)
    if not size:
        return False
    key = 1 + names[0]
    if key >= size or key + 1 + names[key] != size:
        return False
    if names.isascii():
        return True
    try:
        names[1:key].decode()
        names[key + 1 :].decode()
    except UnicodeDecodeError:
        return False
    return True
