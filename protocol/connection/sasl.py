"""SASL responses to credentials; never checks them.

Owns no state. Called by broker.session.session with what LoginAttempt carries.

    PLAIN     NUL user NUL password; an authorization identity before the first NUL is refused
    BURROWMQ-NODE  a user's name (not read here)
    AMQPLAIN  the fields of a table, without its length octets: LOGIN and PASSWORD

Source: RFC 4616; RabbitMQ's rabbit_auth_mechanism_plain and rabbit_auth_mechanism_amqplain.
"""

from __future__ import annotations

from typing import Final

from burrowmq.protocol.errors import MalformedMethod
from burrowmq.protocol.table import FieldValue, MalformedTable, decode_table_body
from burrowmq.records import dataclass

NODE_MECHANISM: Final = "BURROWMQ-NODE"
"""What a node's links into itself log in with: a user's name, or none for the node's own rights. Offered to nobody
else."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user name and a password as the peer gave them."""

    username: str
    password: str


def credentials(mechanism: str, response: bytes) -> Credentials:
    """Read the credentials out of a response.

    Raises: MalformedMethod when the response is not what the mechanism asks for.
    """
    if mechanism == "PLAIN":
        parts = response.split(b"\x00")
        if len(parts) != 3 or parts[0]:
            raise MalformedMethod("PLAIN response is not NUL user NUL password")
        return Credentials(_text(parts[1]), _text(parts[2]))
    if mechanism == "AMQPLAIN":
        try:
            fields = decode_table_body(response)
        except MalformedTable as error:
            raise MalformedMethod("AMQPLAIN response is no field table") from error
        return Credentials(_field(fields.get("LOGIN")), _field(fields.get("PASSWORD")))
    raise MalformedMethod(f"no such mechanism: {mechanism}")


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "surrogateescape")


def _field(value: FieldValue) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return _text(value)
    raise MalformedMethod("AMQPLAIN response is missing LOGIN or PASSWORD field")
