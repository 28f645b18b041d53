"""What the handlers of exchange.* and queue.* share: names as RabbitMQ takes them, bindings, replies.

Owns no state. Called by `broker.channel.methods.exchange` and `broker.channel.methods.queue` only. The order of the
checks is RabbitMQ's, because clients can tell: permissions before existence, source before destination.

Source: rabbit_channel (strip_cr_lf, check_not_default_exchange, binding_action).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from burrowmq.broker.channel.channel import Channel
from burrowmq.broker.vhost.vhost import Edge
from burrowmq.protocol.errors import AccessRefused, AmqpError
from burrowmq.protocol.methods import Method

UNANSWERED_PER_TURN = 100
"""Changes that nobody waits for; a read holds thousands of them, and each takes some ten microseconds."""


def clean_name(name: str) -> str:
    """A name without carriage returns and line feeds."""
    return name.replace("\r", "").replace("\n", "")


def refuse_default_exchange(name: str) -> None:
    """Refuse to declare, delete or bind the default exchange. Raises: AccessRefused."""
    if not name:
        raise AccessRefused("operation not permitted on the default exchange")


def check_binding(channel: Channel, edge: Edge) -> None:
    """The checks that precede bind and unbind alike.

    Raises: AccessRefused.
    """
    channel.rights.check("write", edge.kind, edge.destination)
    refuse_default_exchange(edge.source)
    if edge.kind == "exchange":
        refuse_default_exchange(edge.destination)
    channel.rights.check("read", "exchange", edge.source)
    source = channel.vhost.exchanges.get(edge.source)
    if source is not None and source.type == "topic":
        routing_key = edge.routing_key.decode("utf-8", "surrogateescape")
        channel.rights.check_topic("read", edge.source, routing_key)


Asked = TypeVar("Asked")


def wait_for(
    channel: Channel,
    method: Method,
    ask: Callable[[Callable[[Asked], None]], None],
    then: Callable[[Asked], None],
) -> None:
    """Go on with `then` and what `ask` is told: at once, or later while the channel's input waits.

    What `then` raises is the method's error in both cases.
    """
    is_answered = False

    def on_answer(found: Asked) -> None:
        nonlocal is_answered
        is_answered = True
        if not channel.is_held:
            then(found)
        else:
            channel.resume(lambda: go_on(found))

    def go_on(found: Asked) -> None:
        try:
            then(found)
        except Exception as error:  # noqa: BLE001 - as what a handler raises
            channel.session.guard(channel, error, *method.ids)

    ask(on_answer)
    if not is_answered:
        channel.is_held = True


def answer(
    channel: Channel,
    method: Method,
    reply: Method,
    *,
    staged: int,
    is_durable: bool = False,
    is_shared: bool = True,
) -> None:
    """Send the reply of a topology method, after what it promises is agreed, and on disk.

    `staged` is the vhost's counter from before the change. `is_durable` says that the reply speaks of something
    durable even if this method staged nothing: another channel's declaration of it may not be on disk yet. `is_shared`
    says that it speaks of something that other front-ends may have.
    """
    if getattr(method, "nowait", False):  # queue.unbind has none
        _give_way(channel)
        return
    share = channel.vhost.share

    def on_agreed(error: AmqpError | None) -> None:
        if error is not None:
            raise error
        _answer_durably(channel, reply, staged=staged, is_durable=is_durable)

    if share is not None and is_shared and share.is_waiting:
        wait_for(channel, method, share.when_agreed, on_agreed)
    else:
        on_agreed(None)


def _answer_durably(channel: Channel, reply: Method, *, staged: int, is_durable: bool) -> None:
    vhost = channel.vhost
    if vhost.rows.staged != staged or (is_durable and vhost.rows.is_unsynced()):
        channel.reply_durable(reply)
    else:
        channel.reply(reply)


def _give_way(channel: Channel) -> None:
    """After some changes without a reply to wait for, the rest of the channel's input waits for the next turn."""
    channel.unanswered_count += 1
    if channel.unanswered_count >= UNANSWERED_PER_TURN:
        channel.unanswered_count = 0
        channel.is_held = True
        scheduler = channel.session.scheduler
        # What is staged by the input that goes on needs the end of a turn.
        scheduler.call_later(0, lambda: channel.resume(scheduler.touch))
