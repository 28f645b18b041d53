"""Messages in and out of the HTTP API: publish, get, the aliveness probe.

Owns no state; called by the exchange and queue handlers. Meant for looking, not for traffic: one message costs what a
hundred cost over AMQP. A message that was got is acknowledged or requeued before the reply leaves.
Source: rabbit_mgmt_wm_exchange_publish, rabbit_mgmt_wm_queue_get.
"""

from __future__ import annotations

import asyncio
import base64
import struct
from typing import Any, TypeAlias

from burrowmq.broker import inspect
from burrowmq.broker.channel.methods.publish import all_keys, check_expiration, hide_bcc
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.queue.origin import Origin
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.run import DeliveryRun, returned
from burrowmq.management import commands
from burrowmq.management.answers.reply import ApiError, bad_request, is_number
from burrowmq.protocol import properties as basic
from burrowmq.protocol.codec import join_address, split_address
from burrowmq.protocol.errors import ResourceLocked
from burrowmq.protocol.table import from_json

GET_TIMEOUT_S = 10.0
Taken: TypeAlias = tuple[Origin, DeliveryRun]
NAMES = (
    "content_type", "content_encoding", "headers", "delivery_mode", "priority", "correlation_id", "reply_to",
    "expiration", "message_id", "timestamp", "type", "user_id", "app_id", "cluster_id",
)  # fmt: skip
NUMBERS = ("delivery_mode", "priority", "timestamp")
PROBE = "aliveness-test"


def publish(
    node: RunningNode, vhost: str, exchange: str, key: str, properties: dict[str, Any], body: bytes
) -> bool:
    """Route one message; whether it reached a queue. Raises: AmqpError, ApiError."""
    owner = node.vhosts[vhost]
    commands.topology.check_size("routing_key", key)
    address = join_address(exchange.encode(), key.encode())
    given = _properties(properties)
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
    # The exchange's own lookup refuses internal ones and missing ones.
    route = owner.resolve(address)
    queues = route.queues
    if queues is None or len(keys) > 1:
        queues = owner.route(route.exchange, keys, lambda: headers)
    is_taken = False
    for queue in queues:
        is_taken = (
            isinstance(queue.publish([message], message.flags, message.size), int) or is_taken
        )
    return is_taken


def _properties(given: dict[str, Any]) -> Any:
    unknown = sorted(set(given) - set(NAMES))
    if unknown:
        raise bad_request(f"unknown properties: {', '.join(unknown)}")
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name in NUMBERS:
            if (
                isinstance(value, bool)
                or not isinstance(value, int | str)
                or not is_number(str(value))
            ):
                raise bad_request(["not_int", name])
            values[name] = int(value)
        elif name == "headers":
            if not isinstance(value, dict):
                raise bad_request("headers must be an object")
            values[name] = from_json(value)
        else:
            values[name] = str(value)
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
    taken: list[Taken] = []
    found: list[tuple[Any, bool, int]] = []
    try:
        while len(found) < count:
            one = await _take(queue)
            if one is None:
                break
            origin, run = one
            taken.append(one)
            origin.hand_out(run, no_ack=False)
            found.append((run.messages[0], bool(run.redelivered), queue.ready_count))
    finally:
        for origin, run in reversed(taken):
            _settle(origin, run, ack_mode)
    return found


async def _take(queue: Queue) -> Taken | None:
    """One run of one message, None when there is none; waits when it is being read from disk."""
    waiter: asyncio.Future[Taken | None] = asyncio.get_running_loop().create_future()

    def on_run(origin: Origin | None, run: DeliveryRun | None) -> None:
        found = None if origin is None or run is None else (origin, run)
        if not waiter.done():
            waiter.set_result(found)
        elif found is not None:
            origin, run = found
            origin.hand_out(run, no_ack=False)
            _settle(origin, run, "ack_requeue_true")

    queue.get(on_run)
    try:
        return await asyncio.wait_for(waiter, GET_TIMEOUT_S)
    except TimeoutError as error:
        raise ApiError(503, "timeout", "the queue is loading") from error


def _settle(origin: Origin, run: DeliveryRun, ack_mode: str) -> None:
    if ack_mode.endswith("requeue_true"):
        origin.requeue(returned(run.seqs, run.messages, run.expiries, run.kind, redelivered=True))
        return
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
    publish(node, vhost, "", PROBE, {}, b"test_message")
    if not await get(node, vhost, PROBE, 1, "ack_requeue_false"):
        raise ApiError(503, "failed", "the test message did not come back")
