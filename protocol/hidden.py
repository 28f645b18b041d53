"""What is kept with a message and never shown to clients: its BCC keys, and deaths for which its header has no room.

It lies in the message's `address`, behind exchange and routing key; the flag HIDDEN says so. The store keeps it like
any other `address`, and the frames that clients get stay as they came: the codec writes only the two names of it.
A message that has nothing to hide costs nothing.

    address  exchange (short string), routing key (short string), with HIDDEN: field tables
    tables   the first has BCC, an array of long strings, or nothing; each of the others is a death, an entry of x-death
             older than those in the header, the most recent first

Owns no state. Called where a client's message comes in, and where messages are dead-lettered.
"""

from __future__ import annotations

from burrowmq.protocol.codec import Message
from burrowmq.protocol.constants import HIDDEN
from burrowmq.protocol.table import FieldTable, FieldValue, decode_table_at, encode_table
from burrowmq.records import NamedTuple


class Hidden(NamedTuple):
    """Routing keys and deaths."""

    bcc: list[FieldValue]
    deaths: list[FieldTable]


def hidden(message: Message) -> Hidden:
    """What is kept with a message; two empty lists when nothing is."""
    if not message.flags & HIDDEN:
        return Hidden([], [])
    address = message.address
    first, at = decode_table_at(address, _names_end(address))
    keys = first.get("BCC")
    deaths = []
    while at < len(address):
        death, at = decode_table_at(address, at)
        deaths.append(death)
    return Hidden(keys if isinstance(keys, list) else [], deaths)


def with_hidden(message: Message, kept: Hidden) -> Message:
    """The same message with `kept` in place of what was kept before; not stored yet (handle -1)."""
    address = message.address[: _names_end(message.address)]
    flags = message.flags & ~HIDDEN
    if kept.bcc or kept.deaths:
        tables: list[FieldTable] = [{"BCC": kept.bcc} if kept.bcc else {}, *kept.deaths]
        address += b"".join([encode_table(table) for table in tables])
        flags |= HIDDEN
    return Message(address, message.raw, message.size, flags, message.channel, message.frame_max)


def _names_end(address: bytes) -> int:
    key = 1 + address[0]
    return key + 1 + address[key]
