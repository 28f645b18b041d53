"""burrowmq.broker.peer.der: strings of ASN.1's kinds, names beside them, and octets that are neither."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.peer import der


@pytest.mark.parametrize(
    ("encoded", "text"),
    [
        (b"\x0c\x05k\xc3\xa4se", "käse"),
        (b"\x14\x04k\xe4se", "käse"),
        (b"\x1e\x04\x00a\x03\xbb", "aλ"),
        (b"\x1c\x04\x00\x01\xf6\x00", "😀"),
        (b"\x16\x02ab", "ab"),
        (b"\x0c\x81\x80" + 128 * b"a", 128 * "a"),
    ],
)
def test_strings(encoded, text):
    assert der.string(encoded) == text


def field(tag: int, *contents: bytes) -> bytes:
    content = b"".join(contents)
    return bytes([tag, len(content)]) + content


def test_names():
    def attribute(oid: bytes, value: bytes) -> bytes:
        return field(0x30, field(0x06, oid), value)

    common, local = b"\x55\x04\x03", b"\x88\x37\x83\x00"
    pair = field(0x31, attribute(common, b"\x14\x01\xe4"), attribute(local, b"\x0c\x01b"))
    issuer, subject = field(0x30), field(0x30, pair, field(0x31, attribute(common, b"\x0c\x01c")))
    version, serial, other = field(0xA0, b"\x02\x01\x02"), b"\x02\x01\x05", field(0x30)
    body = field(0x30, version, serial, other, issuer, other, subject, other)
    assert der.names(body) == (
        (),
        ((("2.5.4.3", "ä"), ("2.999.384", "b")), (("2.5.4.3", "c"),)),
    )


@given(st.binary(max_size=60))
def test_octets_of_any_kind_are_read_or_refused(octets):
    for reading in (der.names, der.string):
        try:
            reading(octets)
        except ValueError:
            pass
