"""What is kept with a message and never shown to clients: its BCC keys, and deaths for which its header has no room.

It lies in the message's `exrk`, behind exchange and routing key; the flag HIDDEN says so. The store keeps it like any
other `exrk`, and the frames that clients get stay as they came: the codec writes no more of `exrk` than the two names.
A message that has nothing to hide costs nothing.

    exrk     exchange (short string), routing key (short string), with HIDDEN: field tables
    tables   the first has BCC, an array of long strings, or nothing; each of the others is a death, an entry of x-death
             older than those in the header, the most recent first

Owns no state. Called where a client's message comes in, and where messages are dead-lettered.
"""

from __future__ import annotations

from typing import NamedTuple

from burrowmq.protocol.codec import Message
from burrowmq.protocol.constants import HIDDEN
from burrowmq.protocol.table import FieldTable, FieldValue, decode_table_at, encode_table


class Hidden(NamedTuple):
    """Routing keys and deaths."""

    bcc: list[FieldValue]
    deaths: list[FieldTable]


def hidden(message: Message) -> Hidden:
    """What is kept with a message; two empty lists when nothing is."""
    if not message.flags & HIDDEN:
        return Hidden([], [])
    exrk = message.exrk
    first, at = decode_table_at(exrk, _names_end(exrk))
    keys = first.get("BCC")
    deaths = []
    while at < len(exrk):
        death, at = decode_table_at(exrk, at)
        deaths.append(death)
    return Hidden(keys if isinstance(keys, list) else [], deaths)


def with_hidden(message: Message, kept: Hidden) -> Message:
    """The same message with `kept` in place of what was kept before; not stored yet (handle -1)."""
    exrk = message.exrk[: _names_end(message.exrk)]
    flags = message.flags & ~HIDDEN
    if kept.bcc or kept.deaths:
        tables: list[FieldTable] = [{"BCC": kept.bcc} if kept.bcc else {}, *kept.deaths]
        exrk += b"".join([encode_table(table) for table in tables])
        flags |= HIDDEN
    return Message(exrk, message.raw, message.size, flags, message.channel, message.frame_max)


def _names_end(exrk: bytes) -> int:
    key = 1 + exrk[0]
    return key + 1 + exrk[key]
