"""`amqp.*`: which brokers, which user, how the connection is secured.

Owns no state. Called by the source's and the sink's options.

Either `amqp.uri` (one or more, separated by commas; wire/address.py) or the parts: `amqp.host`, `.port`,
`.vhost`, `.user`, `.password`. Both go with `amqp.passwordFile` or `amqp.passwordEnv`, which are read on the
machine that connects, `amqp.heartbeat` (seconds), `amqp.connectionTimeoutMs`, `amqp.connectionName` and
`amqp.tls.*` (enabled, cacertfile, certfile, keyfile, keyPasswordFile, verify, serverName).

Invariant: a password that was given as a file or a variable is in no plan and no pickle.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pyspark_amqp.options.reading import OptionReader
from pyspark_amqp.wire.address import (
    CONNECT_TIMEOUT_MAX_S,
    HEARTBEAT_MAX_S,
    PLAIN_PORT,
    TLS_PORT,
    Address,
    Tls,
    parse_addresses,
    with_options,
)
from pyspark_amqp.wire.errors import BadAddress

CONNECTION_NAME: Final = "pyspark_amqp"
_PARTS: Final = ("amqp.host", "amqp.port", "amqp.vhost", "amqp.user", "amqp.password")
_TLS: Final = {
    "amqp.tls.cacertfile": "cacertfile",
    "amqp.tls.certfile": "certfile",
    "amqp.tls.keyfile": "keyfile",
    "amqp.tls.keyPasswordFile": "key_password_file",
    "amqp.tls.verify": "verify",
    "amqp.tls.serverName": "server_name_indication",
}

Addresses = tuple[Address, ...]


def read_addresses(options: OptionReader) -> Addresses:
    """Return the brokers to try, in this order; what is wrong is among the problems."""
    is_secured = options.flag("amqp.tls.enabled", default=False)
    found = _from_uri(options) if "amqp.uri" in options else _from_parts(options, is_secured)
    return tuple(_with_the_rest(options, address, is_secured) for address in found)


def may_rotate(addresses: Addresses) -> bool:
    """Whether a password that is refused now may be another one when it is read again."""
    return any(address.password_file is not None for address in addresses)


def _from_uri(options: OptionReader) -> list[Address]:
    beside = [name for name in _PARTS if name in options]
    if beside:
        options.problems.append(f"option 'amqp.uri' excludes {', '.join(beside)}")
    try:
        return parse_addresses(options.text("amqp.uri") or "")
    except BadAddress as error:
        options.problems.append(f"option 'amqp.uri': {error.step}: {error.reason}")
        return []


def _from_parts(options: OptionReader, is_secured: bool) -> list[Address]:
    port = options.number("amqp.port", None, least=1, most=65535)
    return [
        Address(
            host=options.text("amqp.host") or "localhost",
            port=port or (TLS_PORT if is_secured else PLAIN_PORT),
            vhost=options.exact("amqp.vhost", "/"),
            user=options.exact("amqp.user", "guest"),
            password=options.exact("amqp.password", "guest"),
        )
    ]


def _with_the_rest(options: OptionReader, address: Address, is_secured: bool) -> Address:
    if is_secured and address.tls is None:
        address = replace(address, tls=Tls())
    wanted = {query: options.text(name) for name, query in _TLS.items()}
    try:
        address = with_options(address, {name: text for name, text in wanted.items() if text})
    except BadAddress as error:
        options.problems.append(f"amqp.tls: {error.step}: {error.reason}")
    password_file, password_env = (
        options.text("amqp.passwordFile"),
        options.text("amqp.passwordEnv"),
    )
    given = [
        name
        for name in ("amqp.password", "amqp.passwordFile", "amqp.passwordEnv")
        if name in options
    ]
    if len(given) > 1:
        options.problems.append(f"only one of {', '.join(given)} can be the password")
    heartbeat_s = options.number(
        "amqp.heartbeat", address.heartbeat_s, least=0, most=HEARTBEAT_MAX_S
    )
    timeout_s = options.milliseconds(
        "amqp.connectionTimeoutMs", address.connect_timeout_s, least_ms=1
    )
    return replace(
        address,
        password_file=password_file,
        password_env=password_env,
        password=None if password_file or password_env else address.password,
        heartbeat_s=heartbeat_s or 0,
        connect_timeout_s=min(timeout_s, CONNECT_TIMEOUT_MAX_S),
        connection_name=options.text("amqp.connectionName") or CONNECTION_NAME,
    )
