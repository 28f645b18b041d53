"""The fields of an X.509 certificate, read by `cryptography`.

Whether the certificate is to be believed is OpenSSL's business and decided before. No state; called by
`broker.peer.tls` for a client's certificate and by `broker.peer.pem` for a listener's own. Both import this module at
their first certificate only: `cryptography` takes 17 MB of memory, which a node without certificates saves.

Invariant: a certificate that cannot be read is a ValueError, whatever its octets are.
"""

from __future__ import annotations

from cryptography import x509

from burrowmq.broker.peer import der
from burrowmq.broker.peer.certificate import Certificate
from burrowmq.broker.peer.der import Name


def read(encoded: bytes) -> Certificate:
    """Read a certificate.

    Raises: ValueError.
    """
    try:
        return _certificate(x509.load_der_x509_certificate(encoded))
    except x509.InvalidVersion as error:
        raise ValueError("not a certificate") from error


def _certificate(found: x509.Certificate) -> Certificate:
    issuer, subject = _names(found)
    return Certificate(
        subject_parts=subject,
        issuer_parts=issuer,
        not_before=found.not_valid_before_utc,
        not_after=found.not_valid_after_utc,
        alternative_names=_alternative_names(found),
    )


def _names(found: x509.Certificate) -> tuple[Name, Name]:
    """Issuer and subject."""
    try:
        return _name(found.issuer), _name(found.subject)
    except ValueError:
        return der.names(found.tbs_certificate_bytes)  # ISO-8859-1 in a TeletexString, for example


def _name(name: x509.Name) -> Name:
    return tuple(
        tuple((attribute.oid.dotted_string, _text(attribute.value)) for attribute in part)
        for part in name.rdns
    )


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def _alternative_names(found: x509.Certificate) -> tuple[tuple[str, str], ...]:
    """(kind, name) of each; none if any extension of the certificate, or any of these names, cannot be read."""
    try:
        extension = found.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        return tuple(pair for name in extension.value if (pair := _alternative_name(name)))
    except (
        ValueError,
        x509.DuplicateExtension,
        x509.ExtensionNotFound,
        x509.UnsupportedGeneralNameType,
    ):
        return ()


def _alternative_name(name: x509.GeneralName) -> tuple[str, str] | None:
    """None for a kind that RabbitMQ takes no user name from."""
    match name:
        case x509.RFC822Name(value=text):
            return "email", text
        case x509.DNSName(value=text):
            return "dns", text
        case x509.UniformResourceIdentifier(value=text):
            return "uri", text
        case x509.IPAddress(value=address):
            return "ip", str(address)
        case x509.OtherName(value=encoded):
            return "other_name", der.string(encoded)
        case _:
            return None
