r"""What an X.509 certificate says of its holder, in RabbitMQ's words: subject, issuer, validity, alternative names.

Reads the few fields of DER (ITU-T X.690, RFC 5280) that operators see and that EXTERNAL takes a user name from; whether
the certificate is to be believed is OpenSSL's business and decided before. No state; called by `broker.peer.tls` for a
client's certificate and by management for a listener's own.

Invariant: a certificate that cannot be read is a ValueError, whatever its octets are; work grows with its size only.

    Certificate     SEQUENCE { tbsCertificate, ... }
    tbsCertificate  SEQUENCE { [0] version?, serial, algorithm, issuer, validity, subject, key, ..., [3] extensions? }
    Name            SEQUENCE OF SET OF SEQUENCE { type OID, value string }

Source: RabbitMQ's rabbit_cert_info and rabbit_ssl; RFC 4514 for the escapes of a distinguished name.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

COMMON_NAME = "2.5.4.3"
_SHORT_NAMES = {
    "2.5.4.4": "SN",
    "2.5.4.42": "GIVENNAME",
    "2.5.4.43": "INITIALS",
    "2.5.4.44": "GENERATIONQUALIFIER",
    COMMON_NAME: "CN",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "2.5.4.12": "TITLE",
    "2.5.4.6": "C",
    "2.5.4.5": "SERIALNUMBER",
    "2.5.4.65": "PSEUDONYM",
    "0.9.2342.19200300.100.1.25": "DC",
    "1.2.840.113549.1.9.1": "EMAILADDRESS",
    "0.9.2342.19200300.100.1.1": "UID",
}
_ALTERNATIVE_NAMES = "2.5.29.17"
_SEQUENCE, _SET, _OID = 0x30, 0x31, 0x06
_UTC_TIME, _GENERALIZED_TIME = 0x17, 0x18
_BMP, _UNIVERSAL, _T61 = 0x1E, 0x1C, 0x14
_SAN_KINDS = {0x81: "email", 0x82: "dns", 0x86: "uri", 0x87: "ip", 0xA0: "other_name"}

_PEM_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)

Attribute = tuple[str, str]
"""(object identifier in dots, value)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A certificate's readable part; names are tuples of relative names, each of one attribute or more."""

    subject_parts: tuple[tuple[Attribute, ...], ...]
    issuer_parts: tuple[tuple[Attribute, ...], ...]
    not_before: datetime
    not_after: datetime
    alternative_names: tuple[tuple[str, str], ...]
    """(dns, ip, email, uri or other_name; the name)."""

    @property
    def subject(self) -> str:
        """The holder's distinguished name."""
        return _distinguished_name(self.subject_parts)

    @property
    def issuer(self) -> str:
        """The authority's distinguished name."""
        return _distinguished_name(self.issuer_parts)

    @property
    def validity(self) -> str:
        """From when until when it is good."""
        form = "%Y-%m-%dT%H:%M:%SZ"
        return f"{self.not_before.strftime(form)} - {self.not_after.strftime(form)}"

    @property
    def common_names(self) -> tuple[str, ...]:
        """The values of CN."""
        return tuple(
            value for part in self.subject_parts for oid, value in part if oid == COMMON_NAME
        )


def login_name(certificate: Certificate, source: str, san_type: str, san_index: int) -> str | None:
    """The user name that a certificate stands for; None when it has no such name.

    `source` is distinguished_name, common_name (all of them, with commas between) or subject_alternative_name.
    """
    if source == "distinguished_name":
        return certificate.subject
    if source == "common_name":
        return ",".join(certificate.common_names) or None
    names = [name for kind, name in certificate.alternative_names if kind == san_type]
    return names[san_index] if san_index < len(names) else None


def parse(der: bytes) -> Certificate:
    """Read a certificate.

    Raises: ValueError.
    """
    try:
        return _certificate(memoryview(der))
    except (IndexError, OverflowError, StopIteration) as error:
        raise ValueError("not a certificate") from error


def read_pem(path: str) -> list[Certificate]:
    """The certificates in a file; those that cannot be read are left out, and so is a file that cannot."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            content = file.read()
    except OSError:
        return []
    found = []
    for block in _PEM_BLOCK.findall(content):
        with contextlib.suppress(ValueError):
            found.append(parse(ssl.PEM_cert_to_DER_cert(block)))
    return found


def pem_blocks(path: str) -> str:
    """The certificates in a file as they stand there, without anything else (a key, say)."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return "\n".join(_PEM_BLOCK.findall(file.read()))
    except OSError:
        return ""


def _certificate(der: memoryview) -> Certificate:
    fields = list(_items(_inner(_inner(der, _SEQUENCE), _SEQUENCE)))
    if fields[0][0] == 0xA0:
        del fields[0]  # the version
    _, _, issuer, validity, subject = (content for _, content in fields[:5])
    not_before, not_after = (_time(tag, content) for tag, content in _items(validity))
    extensions = next((content for tag, content in fields[5:] if tag == 0xA3), None)
    return Certificate(
        subject_parts=_name(subject),
        issuer_parts=_name(issuer),
        not_before=not_before,
        not_after=not_after,
        alternative_names=() if extensions is None else tuple(_alternative_names(extensions)),
    )


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


def _inner(content: memoryview, tag: int) -> memoryview:
    """The content of the first value, which must have this tag."""
    found, inner = next(_items(content))
    if found != tag:
        raise ValueError(f"expected tag {tag:#x}, found {found:#x}")
    return inner


def _name(content: memoryview) -> tuple[tuple[Attribute, ...], ...]:
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
    """A string of any of ASN.1's kinds."""
    octets = bytes(content)
    if tag == _BMP:
        return octets.decode("utf-16-be", "replace")
    if tag == _UNIVERSAL:
        return octets.decode("utf-32-be", "replace")
    return octets.decode("latin-1" if tag == _T61 else "utf-8", "replace")


def _time(tag: int, content: memoryview) -> datetime:
    text = bytes(content).decode("ascii", "replace")
    if tag == _UTC_TIME:
        # RFC 5280: two digits mean 1950 to 2049.
        text = ("19" if text[:2] >= "50" else "20") + text
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _alternative_names(extensions: memoryview) -> Iterator[tuple[str, str]]:
    for _, extension in _items(_inner(extensions, _SEQUENCE)):
        fields = list(_items(extension))
        if _oid(fields[0][1]) != _ALTERNATIVE_NAMES:
            continue
        for tag, name in _items(_inner(fields[-1][1], _SEQUENCE)):
            kind = _SAN_KINDS.get(tag)
            if kind == "ip":
                yield kind, str(ipaddress.ip_address(bytes(name)))
            elif kind == "other_name":
                # SEQUENCE { type OID, [0] value }, the sequence's tag replaced by [0].
                value_tag, value = next(_items(list(_items(name))[1][1]))
                yield kind, _text(value_tag, value)
            elif kind is not None:
                yield kind, _text(tag, name)


def _distinguished_name(parts: tuple[tuple[Attribute, ...], ...]) -> str:
    shown = (
        "+".join(f"{_SHORT_NAMES.get(oid, oid)}={_escaped(value)}" for oid, value in part)
        for part in parts
    )
    return ",".join(reversed(list(shown)))


def _escaped(value: str) -> str:
    """RFC 4514, and what is not printable ASCII as its UTF-8 octets, which RabbitMQ escapes too."""
    shown = "".join(
        f"\\{octet:02X}"
        if octet < 32 or octet >= 126
        else f"\\{chr(octet)}"
        if chr(octet) in '"+,;<>\\'
        else chr(octet)
        for octet in value.encode()
    )
    if shown[:1] in (" ", "#"):
        shown = "\\" + shown
    if value.endswith(" ") and len(value) > 1:
        shown = shown[:-1] + "\\ "
    return shown
