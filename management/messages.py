"""Messages in and out of the HTTP API: publish, get, the aliveness probe.

Owns no state; called by the exchange and queue handlers. Meant for looking, not for traffic: one message costs what a
hundred cost over AMQP. A message that was got is acknowledged or requeued before the reply leaves. As in RabbitMQ,
which opens a channel with confirms for each request, they are counted as that channel's would be.
Source: rabbit_mgmt_wm_exchange_publish, rabbit_mgmt_wm_queue_get.
"""

from __future__ import annotations

import asyncio
import base64
import struct
from typing import Any, TypeAlias

from burrowmq.broker import inspect
from burrowmq.broker.channel.methods.publish import all_keys, check_expiration, hide_bcc
from burrowmq.broker.channel.reply import PSEUDO_QUEUE
from burrowmq.broker.exchange.base import Exchange
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.queue.origin import Origin
from burrowmq.broker.queue.outcome import PENDING, Outcome
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.queue.run import DeliveryRun, Returned, returned
from burrowmq.broker.report.metrics import VhostMetrics
from burrowmq.broker.vhost.router import is_no_queue
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.management import commands
from burrowmq.management.answers.reply import ApiError, bad_request, is_number, table_of
from burrowmq.protocol import properties as basic
from burrowmq.protocol.codec import join_address, split_address
from burrowmq.protocol.errors import PreconditionFailed, ResourceLocked
from burrowmq.protocol.table import from_json

GET_TIMEOUT_S = 10.0
Taken: TypeAlias = tuple[Origin, DeliveryRun]
NAMES = (
    "content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id", "reply_to",
    "expiration", "message_id", "timestamp", "type", "user_id", "app_id", "cluster_id",
)  # fmt: skip
NUMBERS = {"delivery_mode": 0xFF, "priority": 0xFF, "timestamp": 0xFFFF_FFFF_FFFF_FFFF}
TEXT_BYTES = 255
PROBE = "aliveness-test"


async def publish(
    node: RunningNode, vhost: str, exchange: str, key: str, properties: dict[str, Any], body: bytes
) -> bool:
    """Route one message; whether a queue has taken it, when that is known. Raises: AmqpError, ApiError."""
    past = node.vhosts[vhost].past  # which may be gone when they have answered
    given = hand_in(node, vhost, exchange, key, properties, body)
    is_pending = any(isinstance(outcome, int) and outcome & PENDING for _, outcome in given)
    # Of the commit that has it now, before queues elsewhere are waited for.
    committed = commands.commit.refused(node) if is_pending else None
    try:
        taken = [await commands.commit.taken(outcome) for _, outcome in given]
        refused = await committed if committed is not None else frozenset()
    finally:
        if committed is not None:
            committed.close()
    queues = [(queue.vhost_name, queue.name) for queue, _ in given]
    taken = [each and queue not in refused for each, queue in zip(taken, queues, strict=True)]
    if all(taken):
        past.confirm += 1
        node.metrics.messages_confirmed += 1
    return any(taken)


def hand_in(
    node: RunningNode, vhost: str, exchange: str, key: str, properties: dict[str, Any], body: bytes
) -> list[tuple[QueuePort, Outcome]]:
    """Route one message; what the queues say that it reached. Raises: AmqpError, ApiError."""
    owner = node.vhosts[vhost]
    commands.topology.check_size("routing_key", key)
    address = join_address(exchange.encode(), key.encode())
    given = _properties(properties)
    if given.reply_to == PSEUDO_QUEUE:  # of a consumer on the same channel, which there is none of
        raise PreconditionFailed("fast reply consumer does not exist")
    if given.expiration is not None:
        check_expiration(given.expiration)
    try:
        message = basic.build(address, given, body)
    except (ValueError, OverflowError, struct.error) as error:
        raise bad_request(f"a property does not fit its type in AMQP: {error}") from error
    headers = given.headers or {}
    keys = all_keys(message, given) if headers.keys() & {"CC", "BCC"} else (key.encode(),)
    if "BCC" in headers:
        message = hide_bcc(message, given)
    # Internal exchanges and missing ones are refused there.
    source = owner.source(exchange).exchange
    queues = owner.route(source, keys, lambda: given)
    for target in filter(is_no_queue, queues):
        target.publish([message], message.flags, message.size)
    reached = [queue for queue in queues if not is_no_queue(queue)]
    given = [(queue, queue.publish([message], message.flags, message.size)) for queue in reached]
    _count_published(node, owner, source, len(reached))
    return given


def _count_published(node: RunningNode, vhost: Vhost, exchange: Exchange, queue_count: int) -> None:
    totals, past = node.metrics, vhost.past
    exchange.publish_in += 1
    exchange.publish_out += queue_count
    past.publish += 1
    totals.messages_received += 1
    totals.messages_received_confirm += 1
    if queue_count:
        totals.messages_routed += 1
    else:
        past.return_unroutable += 1
        totals.messages_unroutable_returned += 1


def _properties(given: dict[str, Any]) -> Any:
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in NAMES:
            continue  # passed over, as in RabbitMQ
        if name in NUMBERS:
            if (
                isinstance(value, bool)
                or not isinstance(value, int | str)
                or not is_number(str(value))
            ):
                raise bad_request(["not_int", name])
            values[name] = int(value)
            if not 0 <= values[name] <= NUMBERS[name]:
                raise bad_request(f"{name} must be between 0 and {NUMBERS[name]}")
        elif name == "headers":
            # Languages without a type for it write an empty table as an empty list.
            values[name] = from_json(table_of({} if value == [] else value, name))
        elif not isinstance(value, str):
            raise bad_request(["not_string", name])
        elif len(value.encode("utf-8", "surrogatepass")) > TEXT_BYTES:
            raise bad_request(f"{name} is longer than {TEXT_BYTES} bytes")
        else:
            values[name] = value
    return basic.Properties(**values)


async def get(
    node: RunningNode, vhost: str, name: str, count: int, ack_mode: str
) -> list[tuple[Any, bool, int]]:
    """Up to `count` (message, redelivered, messages left) of a queue, settled as asked."""
    queue = commands.topology.queue_of(node, vhost, name)
    try:
        node.vhosts[vhost].check_access(queue, None)
    except ResourceLocked as refusal:
        # RabbitMQ gets messages over a channel and tells what closed it.
        raise bad_request(f"405 RESOURCE_LOCKED - {refusal}") from refusal
    past = node.vhosts[vhost].past
    taken: list[Taken] = []
    found: list[tuple[Any, bool, int]] = []
    try:
        while len(found) < count:
            one = await _take(node, queue)
            if one is None:
                _count_empty(node, past, queue)
                break
            _, run = one
            taken.append(one)
            _count_got(node, past, queue, run, no_ack=ack_mode == "ack_requeue_false")
            found.append((run.messages[0], bool(run.redelivered), queue.ready_count))
    finally:
        _settle(taken, ack_mode)
    return found


def _count_got(
    node: RunningNode, past: VhostMetrics, queue: QueuePort, run: DeliveryRun, *, no_ack: bool
) -> None:
    totals = node.metrics
    queue.counts.got(no_ack=no_ack)
    totals.messages_delivered += 1
    if no_ack:
        past.get_no_ack += 1
        totals.messages_get_auto_ack += 1
    else:
        past.get += 1
        totals.messages_get_manual_ack += 1
    past.redeliver += bool(run.redelivered)


def _count_empty(node: RunningNode, past: VhostMetrics, queue: QueuePort) -> None:
    if not queue.is_deleted:
        queue.counts.got_nothing()
    past.get_empty += 1
    node.metrics.messages_get_empty += 1


async def _take(node: RunningNode, queue: QueuePort) -> Taken | None:
    """One run of one message, None when there is none; waits when it is being read from disk.

    It counts as handed out at once: who waits goes on in a later turn, and until then it is neither ready nor lost.
    Raises: ApiError 503 when it takes too long, or the disk refuses to be read.
    """
    waiter: asyncio.Future[Taken | None] = asyncio.get_running_loop().create_future()

    def on_run(origin: Origin | None, run: DeliveryRun | None) -> None:
        found = None if origin is None or run is None else (origin, run)
        if found is not None:
            found[0].hand_out(found[1], no_ack=False)
        if not waiter.done():
            waiter.set_result(found)
        elif found is not None:
            _settle([found], "ack_requeue_true")

    queue.get(on_run)
    try:
        found = await asyncio.wait_for(waiter, GET_TIMEOUT_S)
    except TimeoutError as error:
        raise _unavailable(node, queue) from error
    if found is None and queue.is_withheld:
        raise _unavailable(node, queue)
    return found


def _unavailable(node: RunningNode, queue: QueuePort) -> ApiError:
    if queue.is_withheld:
        reason = node.queue_faults.withheld(queue.vhost_name, queue.name)
        return ApiError(503, "unavailable", reason)
    return ApiError(503, "timeout", "the queue is loading")


def _settle(taken: list[Taken], ack_mode: str) -> None:
    if ack_mode.endswith("requeue_true"):
        # All of a level at once: they are in their places before anybody is served.
        back: dict[Origin, list[Returned]] = {}
        for origin, run in taken:
            back.setdefault(origin, []).extend(
                returned(run.seqs, run.messages, run.expiries, run.kind, redelivered=True)
            )
        for origin, entries in back.items():
            origin.requeue(entries)
        return
    for origin, run in taken:
        if ack_mode == "reject_requeue_false":
            origin.reject(run.messages)
        # Counted as an ack is only what a client acknowledges.
        origin.settle(run.seqs, run.messages, run.kind, run.size, is_acked=False)


def row(found: tuple[Any, bool, int], encoding: str, truncate: int | None) -> dict[str, Any]:
    """A message as the API shows it."""
    message, is_redelivered, left = found
    exchange, key = split_address(message.address)
    body = basic.body(message.raw)
    shown = body if truncate is None else body[: max(0, truncate)]
    payload, payload_encoding = _text(shown, encoding)
    values = basic.decode(message.raw)
    properties = {
        name: inspect.plain(getattr(values, name))
        for name in NAMES
        if getattr(values, name) is not None
    }
    return {
        "payload_bytes": len(body),
        "redelivered": is_redelivered,
        "exchange": exchange.decode("utf-8", "replace"),
        "routing_key": key.decode("utf-8", "replace"),
        "message_count": left,
        # RabbitMQ: no properties are an empty list; scripts know it.
        "properties": properties or [],
        "payload": payload,
        "payload_encoding": payload_encoding,
    }


def _text(body: bytes, encoding: str) -> tuple[str, str]:
    if encoding == "auto":
        try:
            return body.decode("utf-8"), "string"
        except UnicodeDecodeError:
            pass
    return base64.b64encode(body).decode("ascii"), "base64"


async def probe(node: RunningNode, vhost: str) -> None:
    """Declare, publish and get in a vhost. Raises: whatever goes wrong."""
    commands.topology.declare_queue(node, vhost, PROBE, False, False, {})
    await publish(node, vhost, "", PROBE, {}, b"test_message")
    if not await get(node, vhost, PROBE, 1, "ack_requeue_false"):
        raise ApiError(503, "failed", "the test message did not come back")
