"""exchange.*: declare, delete, bind, unbind.

Free functions (channel, method); errors are raised, the session turns them into closes. The order of checks is
RabbitMQ 3.13's: type, name, permission, existence, then the rest.

Source: rabbit_channel (handle_method for exchange.*), rabbit_exchange:check_type, assert_equivalence.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from burrowmq.broker.channel.channel import Channel
from burrowmq.broker.channel.methods.topology import (
    answer,
    check_binding,
    clean_name,
    refuse_default_exchange,
    wait_for,
)
from burrowmq.broker.exchange import TYPES
from burrowmq.broker.exchange.graph import alternate_exchange
from burrowmq.broker.vhost import agreement
from burrowmq.broker.vhost.vhost import Edge, ExchangeDeclaration
from burrowmq.broker.words.resource import RESERVED_PREFIX, describe
from burrowmq.protocol.errors import AccessRefused, AmqpError, PreconditionFailed
from burrowmq.protocol.methods import Exchange as Methods


def declare(channel: Channel, method: Any) -> None:
    """exchange.declare; passive only asks whether it exists."""
    vhost = channel.vhost
    staged = vhost.rows.staged
    if method.passive:
        name = clean_name(method.exchange)
        refuse_default_exchange(name)
        exchange = vhost.exchange(name)
    else:
        if method.exchange_type not in TYPES:
            raise PreconditionFailed(f"unknown exchange type '{method.exchange_type}'")
        name = clean_name(method.exchange)
        refuse_default_exchange(name)
        channel.rights.check("configure", "exchange", name)
        declaration = ExchangeDeclaration(
            name=name,
            type=method.exchange_type,
            durable=method.durable,
            auto_delete=method.auto_delete,
            internal=method.internal,
            arguments=method.arguments or {},
        )
        known = vhost.exchanges.get(name)
        if known is None:
            _check_new(channel, declaration)
            if vhost.share is not None and declaration.durable:
                _declare_shared(channel, declaration, method)
                return
            exchange = vhost.create_exchange(declaration)
        else:
            vhost.check_equivalent_exchange(known, declaration)
            exchange = known
    answer(
        channel,
        method,
        Methods.DeclareOk(),
        staged=staged,
        is_durable=exchange.durable,
    )


def _declare_shared(channel: Channel, declaration: ExchangeDeclaration, method: Any) -> None:
    """All front-ends agree on a new exchange first: another one may have declared it differently meanwhile."""
    vhost = channel.vhost
    staged = vhost.rows.staged

    def on_agreed(error: AmqpError | None) -> None:
        if error is not None:
            raise error
        vhost.check_equivalent_exchange(vhost.exchange(declaration.name), declaration)
        reply = Methods.DeclareOk()
        answer(channel, method, reply, staged=staged, is_durable=True)

    wait_for(
        channel,
        method,
        functools.partial(agreement.propose_exchange, vhost, declaration),
        on_agreed,
    )


def _check_new(channel: Channel, declaration: ExchangeDeclaration) -> None:
    """What only an exchange that is to be made is asked."""
    name = declaration.name
    if name.startswith(RESERVED_PREFIX):
        raise AccessRefused(f"exchange name '{name}' contains reserved prefix 'amq.*'")
    alternate = alternate_exchange(declaration.arguments, name, channel.vhost.name)
    if alternate is not None:
        channel.rights.check("read", "exchange", name)
        channel.rights.check("write", "exchange", alternate)


def delete(channel: Channel, method: Any) -> None:
    """exchange.delete; an exchange that does not exist is deleted well enough."""
    vhost = channel.vhost
    staged = vhost.rows.staged
    name = clean_name(method.exchange)
    refuse_default_exchange(name)
    if name.startswith(RESERVED_PREFIX):
        raise AccessRefused(
            f"deletion of system {describe('exchange', name, vhost.name)} not allowed"
        )
    channel.rights.check("configure", "exchange", name)
    exchange = vhost.exchanges.get(name)

    def on_agreed(error: AmqpError | None) -> None:
        if error is not None:
            raise error
        answer(channel, method, Methods.DeleteOk(), staged=staged, is_durable=exchange is None)

    if exchange is None:
        on_agreed(None)
    elif vhost.share is not None and exchange.durable:
        vhost.graph.check_deletable(exchange, if_unused=method.if_unused)
        wait_for(
            channel,
            method,
            functools.partial(agreement.propose_no_exchange, vhost, name),
            on_agreed,
        )
    else:
        vhost.delete_exchange(exchange, if_unused=method.if_unused)
        on_agreed(None)


def bind(channel: Channel, method: Any) -> None:
    """exchange.bind: from source to destination."""
    staged = channel.vhost.rows.staged
    edge = _edge(method)
    check_binding(channel, edge)
    channel.vhost.bind(edge, channel.session)
    answer(channel, method, Methods.BindOk(), staged=staged, is_durable=True)


def unbind(channel: Channel, method: Any) -> None:
    """exchange.unbind; a binding that does not exist is removed well enough."""
    staged = channel.vhost.rows.staged
    edge = _edge(method)
    check_binding(channel, edge)
    channel.vhost.unbind(edge, channel.session)
    answer(channel, method, Methods.UnbindOk(), staged=staged, is_durable=True)


def _edge(method: Any) -> Edge:
    return Edge(
        source=clean_name(method.source),
        kind="exchange",
        destination=clean_name(method.destination),
        routing_key=method.routing_key.encode("utf-8", "surrogateescape"),
        arguments=method.arguments or {},
    )


Handler = Callable[[Channel, Any], None]
HANDLERS: dict[str, Handler] = {
    "Exchange.Declare": declare,
    "Exchange.Delete": delete,
    "Exchange.Bind": bind,
    "Exchange.Unbind": unbind,
}
