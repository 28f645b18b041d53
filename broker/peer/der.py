"""The strings of DER (ITU-T X.690) that `cryptography` leaves as octets or refuses.

Two kinds of them may hold a user's name. One is a TeletexString: authorities of the nineties wrote ISO-8859-1 into it,
and RabbitMQ reads it as that, but `cryptography` refuses the whole name when it is not UTF-8. The other is the value of
an otherName, which `cryptography` returns as encoded octets. Everything else of a certificate is `cryptography`'s
business. No state; called by `broker.peer.fields`.

    Name            SEQUENCE OF SET OF SEQUENCE { type OID, value string }
    tbsCertificate  SEQUENCE { [0] version?, serial, algorithm, issuer, validity, subject, key, ... }

Invariant: octets that are something else are a ValueError; work grows with their number only.
"""

from __future__ import annotations

from collections.abc import Iterator

Attribute = tuple[str, str]
"""(object identifier in dots, value)."""

Name = tuple[tuple[Attribute, ...], ...]
"""Relative names, each of one attribute or more, in the certificate's order."""

_SEQUENCE = 0x30
_T61, _UNIVERSAL, _BMP = 0x14, 0x1C, 0x1E


def names(to_be_signed: bytes) -> tuple[Name, Name]:
    """Issuer and subject, from the signed part of a certificate.

    Raises: ValueError.
    """
    try:
        ((_, fields),) = _items(memoryview(to_be_signed))
        sequences = [content for tag, content in _items(fields) if tag == _SEQUENCE]
        _, issuer, _, subject = sequences[:4]
        return _name(issuer), _name(subject)
    except IndexError as error:
        raise ValueError("not a certificate") from error


def string(encoded: bytes) -> str:
    """A string of any of ASN.1's kinds, with its tag.

    Raises: ValueError.
    """
    try:
        ((tag, content),) = _items(memoryview(encoded))
    except IndexError as error:
        raise ValueError("not a string") from error
    return _text(tag, content)


def _items(content: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield (tag, content) of the values that stand one after the other."""
    at = 0
    while at < len(content):
        tag, size, at = content[at], content[at + 1], at + 2
        if size & 0x80:
            octets = size & 0x7F
            size, at = int.from_bytes(content[at : at + octets], "big"), at + octets
        if size > len(content) - at:
            raise ValueError("a value is longer than what holds it")
        yield tag, content[at : at + size]
        at += size


def _name(content: memoryview) -> Name:
    return tuple(
        tuple(_attribute(attribute) for _, attribute in _items(part)) for _, part in _items(content)
    )


def _attribute(content: memoryview) -> Attribute:
    (_, oid), (tag, value) = _items(content)
    return _oid(oid), _text(tag, value)


def _oid(content: memoryview) -> str:
    numbers: list[int] = []
    value = 0
    for octet in content:
        value = value << 7 | octet & 0x7F
        if not octet & 0x80:
            numbers.append(value)
            value = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(str(number) for number in (first, numbers[0] - 40 * first, *numbers[1:]))


def _text(tag: int, content: memoryview) -> str:
    octets = bytes(content)
    if tag == _BMP:
        return octets.decode("utf-16-be", "replace")
    if tag == _UNIVERSAL:
        return octets.decode("utf-32-be", "replace")
    return octets.decode("latin-1" if tag == _T61 else "utf-8", "replace")
