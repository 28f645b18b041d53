"""Damaged messages that the store has set aside: put one back into its queue as far as it is whole, or drop it.

Owns no state; the engine has the files, and knows which messages are being put back. A message goes back at the end of
its queue, as it was read: its envelope is checked, frame by frame, so that no client sees anything that is not AMQP;
its body is what it is.
"""

from __future__ import annotations

import asyncio
import struct
from functools import partial

from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.queue.outcome import Outcome, Rejected, Ticket
from burrowmq.management.answers.disk_threads import ask_disk
from burrowmq.management.answers.reply import NOT_RUNNING, ApiError, bad_request, not_found
from burrowmq.management.commands.commit import COMMIT_TIMEOUT_S, refused_later, staged
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
from burrowmq.storage.directory.quarantine import SetAside
from burrowmq.storage.errors import StorageError

_FRAME = struct.Struct(">BHI")
_CLASS_AND_WEIGHT = struct.pack(">HH", CLASS_BASIC, 0)
# MAYBE_CC is not among these: a dead letter by a queue's own key has it no more, whatever its header says.
_OF_HEADER = 0xFFFF | PERSISTENT | NEEDS_LOOK
_KNOWN = _OF_HEADER | MANDATORY | IMMEDIATE | MAYBE_CC | ON_DISK | HIDDEN
Parts = tuple[bytes, bytes, int, int]


async def restore(node: RunningNode, name: str) -> None:
    """Publish a message into the queue that it was set aside from. Raises ApiError when that cannot be.

    Whatever becomes of this call, nobody else puts it back before it is known whether its queue has it durably; then it
    leaves quarantine.
    """
    kept = node.engine.quarantine
    if not kept.claim(name):
        raise bad_request("it is being put back, or was and cannot be removed")
    try:
        about, outcome = await _given_back(node, name)
    except BaseException:
        kept.release(name)
        raise
    staged(node)
    ending = _ending(node, name, (about.vhost, about.queue), outcome)
    await asyncio.wait(
        (ending, node.failed), timeout=COMMIT_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED
    )
    if node.failed.done() and not ending.done():
        raise ApiError(503, "store_failed", "it was not written to disk; see the log")
    if not ending.done():
        reason = "its queue does not have it yet: it leaves quarantine as soon as it does"
        raise ApiError(503, "unavailable", reason)
    if ending.result():
        raise bad_request(ending.result())


async def _given_back(node: RunningNode, name: str) -> tuple[SetAside, Outcome]:
    """Give a message to its queue. Raises ApiError."""
    about, parts = await ask_disk(_load, node, name)
    if node.scheduler.is_stopped:
        raise ApiError(503, NOT_RUNNING, "the application is being stopped")
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
    return about, queue.publish([message], message.flags, size)


def _ending(
    node: RunningNode, name: str, queue: tuple[str, str], outcome: Outcome
) -> asyncio.Future[str]:
    """Becomes why a message stays in quarantine, or may; empty when it has left, its queue having it durably."""
    kept = node.engine.quarantine
    loop = asyncio.get_running_loop()
    ending: asyncio.Future[str] = loop.create_future()

    def refuse(reason: str) -> None:
        kept.release(name)
        ending.set_result(reason)

    def leave() -> None:
        loop.run_in_executor(None, kept.remove, name).add_done_callback(on_removed)

    def on_removed(removal: asyncio.Future[None]) -> None:
        why = _why_not_gone(removal.exception())
        ending.set_result(why and f"it is back in its queue, but {why}")

    def on_committed(committed: asyncio.Future[frozenset[tuple[str, str]]]) -> None:
        if queue in committed.result():
            refuse(f"the disk refuses queue '{queue[1]}' what it is given: it stays here, too")
        else:
            leave()

    def on_done(ticket: Ticket) -> None:
        if ticket.refused:
            refuse(f"queue '{queue[1]}' refuses it: is it full?")
        else:
            leave()

    if isinstance(outcome, int):
        refused_later(node).add_done_callback(on_committed)
    elif isinstance(outcome, Rejected):
        refuse(f"queue '{queue[1]}' refuses it: is it full?")
    elif outcome.is_done:
        on_done(outcome)
    else:
        outcome.on_done = partial(on_done, outcome)
    return ending


async def remove(node: RunningNode, name: str) -> None:
    """Remove a message from quarantine for good. Raises ApiError."""
    await ask_disk(_load, node, name)
    try:
        await ask_disk(node.engine.quarantine.remove, name)
    except (OSError, StorageError) as error:
        raise bad_request(_why_not_gone(error)) from error


def _why_not_gone(error: BaseException | None) -> str:
    if isinstance(error, OSError):
        return f"it cannot be removed: {error.strerror}"
    if isinstance(error, StorageError):
        return f"it may be here again after a power cut: {error}"
    if error is not None:
        raise error
    return ""


def _load(node: RunningNode, name: str) -> tuple[SetAside, Parts | None]:
    try:
        found = node.engine.quarantine.load(name)
    except StorageError as error:
        raise bad_request(str(error)) from error
    if found is None:
        raise not_found()
    return found


def is_whole(parts: Parts) -> bool:
    """Tell whether a message's frames are what AMQP asks for, what is beside them is whole, and its body has its size.

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
