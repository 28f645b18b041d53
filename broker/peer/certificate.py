r"""What an X.509 certificate says of its holder, in RabbitMQ's words: subject, issuer, validity, alternative names.

Holds the few fields that operators see and that EXTERNAL takes a user name from, and writes names as RabbitMQ does,
which is not as `cryptography` does: names of attributes that RFC 4514 does not have (`EMAILADDRESS`), its numbers for
all others, and an escape for each octet that is not printable ASCII. Made by `broker.peer.fields`; used by
`broker.session.admission`, which asks for a user name, and by inspection. No state.

Source: RabbitMQ's rabbit_cert_info and rabbit_ssl; RFC 4514 for the escapes of a distinguished name.
"""

from __future__ import annotations

from datetime import datetime

from burrowmq.broker.peer.der import Name
from burrowmq.records import dataclass

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """A certificate's readable part."""

    subject_parts: Name
    issuer_parts: Name
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


def _distinguished_name(parts: Name) -> str:
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
