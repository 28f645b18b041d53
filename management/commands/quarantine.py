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
from burrowmq.protocol.codec import load_message, split_address
from burrowmq.protocol.properties import decode
from burrowmq.storage.errors import StorageError

_FRAME = struct.Struct(">BHI")
_HEADER_FRAME, _BODY_FRAME, _END = 2, 3, 0xCE
_STORED = 1 << 20  # storage.types.ON_DISK
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
    message = load_message(address, raw, size, flags & ~_STORED, -1)
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
    """Tell whether a message's frames are what AMQP asks for, its properties can be read, and its body has its size."""
    address, raw, size, _ = parts
    at = body_size = 0
    try:
        exchange, key = split_address(address)
        if len(address) < len(exchange) + len(key) + 2:
            return False
        while at < len(raw):
            kind, _, length = _FRAME.unpack_from(raw, at)
            if kind != (_BODY_FRAME if at else _HEADER_FRAME) or raw[at + 7 + length] != _END:
                return False
            body_size += length if at else 0
            at += length + 8
        if at != len(raw) or not raw:
            return False
        decode(raw)
    except Exception:  # noqa: BLE001 - whatever the damage does to a decoder
        return False
    return body_size == size == int.from_bytes(raw[11:19], "big")
