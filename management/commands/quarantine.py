"""Damaged messages that the store has set aside: put one back into its queue as far as it is whole, or drop it.

Owns no state; the engine has the files. A message goes back at the end of its queue, as it was read: its envelope is
checked, frame by frame, so that no client sees anything that is not AMQP; its body is what it is.
"""

from __future__ import annotations

import asyncio
import struct
from typing import Any

from burrowmq.broker.node.running import RunningNode
from burrowmq.management.answers.reply import bad_request, not_found
from burrowmq.management.commands.commit import refused, staged, taken
from burrowmq.protocol.codec import header_flags, join_address, load_message, split_address
from burrowmq.protocol.constants import (
    CLASS_BASIC,
    FRAME_BODY,
    FRAME_END,
    FRAME_HEADER,
    HIDDEN,
    IMMEDIATE,
    MANDATORY,
    MAYBE_CC,
    NEEDS_LOOK,
    ON_DISK,
    PERSISTENT,
)
from burrowmq.protocol.hidden import hidden
from burrowmq.protocol.properties import decode
from burrowmq.storage.errors import StorageError

_FRAME = struct.Struct(">BHI")
_CLASS_AND_WEIGHT = struct.pack(">HH", CLASS_BASIC, 0)
# MAYBE_CC is not among these: a dead letter by a queue's own key has it no more, whatever its header says.
_OF_HEADER = 0xFFFF | PERSISTENT | NEEDS_LOOK
_KNOWN = _OF_HEADER | MANDATORY | IMMEDIATE | MAYBE_CC | ON_DISK | HIDDEN
Parts = tuple[bytes, bytes, int, int]


async def restore(node: RunningNode, name: str) -> None:
    """Publish a message into the queue that it was set aside from. Raises ApiError when that cannot be."""
    found = await asyncio.to_thread(_load, node, name)
    about, parts = found
    vhost = node.vhosts.get(about.vhost)
    queue = vhost.queues.get(about.queue) if vhost is not None else None
    if queue is None:
        raise bad_request(f"no queue '{about.queue}' in vhost '{about.vhost}'")
    if parts is None or not is_whole(parts):
        raise bad_request(
            "its envelope is damaged: only its bytes are left, in the quarantine's file"
        )
    address, raw, size, flags = parts
    message = load_message(address, raw, size, flags & ~ON_DISK, -1)
    outcome = queue.publish([message], message.flags, size)
    staged(node)
    if not await taken(outcome):
        raise bad_request(f"queue '{about.queue}' refuses it: is it full?")
    if (about.vhost, about.queue) in await refused(node):
        raise bad_request(
            f"the disk refuses queue '{about.queue}' what it is given: it stays here, too"
        )
    await remove(node, name)


async def remove(node: RunningNode, name: str) -> None:
    """Remove a message from quarantine for good. Raises ApiError."""
    await asyncio.to_thread(_load, node, name)
    try:
        await asyncio.to_thread(node.engine.quarantine.remove, name)
    except OSError as error:
        raise bad_request(f"it cannot be removed: {error.strerror}") from error
    except StorageError as error:
        raise bad_request(f"it is gone, but may be back after a power cut: {error}") from error


def _load(node: RunningNode, name: str) -> tuple[Any, Parts | None]:
    try:
        found = node.engine.quarantine.load(name)
    except StorageError as error:
        raise bad_request(str(error)) from error
    if found is None:
        raise not_found()
    return found


def is_whole(parts: Parts) -> bool:
    """Tell whether a message's frames are what AMQP asks for, what is beside them can be read, and its body has its size.

    Its flags have to be those that its header gives: by them it is stored, told to clients and made a dead letter.
    """
    address, raw, size, flags = parts
    try:
        if not raw or _body_size(raw) != size or int.from_bytes(raw[11:19], "big") != size:
            return False
        given = header_flags(raw[7 : 7 + int.from_bytes(raw[3:7], "big")])
        if given < 0 or (given ^ flags) & _OF_HEADER or flags & ~_KNOWN:
            return False
        decode(raw)
        if flags & HIDDEN:
            hidden(load_message(address, raw, size, flags, -1))
            return True
        return join_address(*split_address(address)) == address
    except Exception:  # noqa: BLE001 - whatever the damage does to a decoder
        return False


def _body_size(raw: bytes) -> int:
    """Octets of the body in a message's frames; -1 when they are not those of one content of one channel."""
    at = size = 0
    while at < len(raw):
        kind, _, length = _FRAME.unpack_from(raw, at)
        if kind != (FRAME_BODY if at else FRAME_HEADER) or raw[at + 7 + length] != FRAME_END:
            return -1
        if raw[1:3] != raw[at + 1 : at + 3]:
            return -1
        size += length if at else 0
        at += length + 8
    return size if at == len(raw) and raw[7:11] == _CLASS_AND_WEIGHT else -1
