from __future__ import annotations

import pytest

from burrowmq.protocol.connection.sasl import Credentials, credentials
from burrowmq.protocol.errors import MalformedMethod
from burrowmq.protocol.table import encode_table


def test_plain() -> None:
    assert credentials("PLAIN", b"\x00guest\x00secret") == Credentials("guest", "secret")
    assert credentials("PLAIN", "\0ü\0é".encode()) == Credentials("ü", "é")


@pytest.mark.parametrize(
    "response", [b"", b"guest", b"\x00guest", b"a\x00b\x00c", b"\x00a\x00b\x00c"]
)
def test_plain_wants_exactly_two_parts_and_no_authorization_identity(response: bytes) -> None:
    with pytest.raises(MalformedMethod):
        credentials("PLAIN", response)


def test_amqplain() -> None:
    response = encode_table({"LOGIN": "guest", "PASSWORD": b"secret"})[4:]
    assert credentials("AMQPLAIN", response) == Credentials("guest", "secret")


@pytest.mark.parametrize(
    "response",
    [
        b"nonsense",
        encode_table({"LOGIN": "guest"})[4:],
        encode_table({"LOGIN": "guest", "PASSWORD": 5})[4:],
    ],
)
def test_amqplain_wants_login_and_password(response: bytes) -> None:
    with pytest.raises(MalformedMethod):
        credentials("AMQPLAIN", response)


def test_unknown_mechanism() -> None:
    with pytest.raises(MalformedMethod):
        credentials("GSSAPI", b"")
