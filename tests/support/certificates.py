"""A throw-away certificate authority: keys and certificates as PEM files, made while a test runs.

Owns nothing; the directory is the caller's. Elliptic keys, because they take a millisecond to make.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

NOW = datetime.datetime.now(datetime.UTC)


def distinguished(**names: str) -> x509.Name:
    """A name of the attributes given, in their order: `distinguished(organization_name="x", common_name="y")`."""
    return x509.Name(
        [x509.NameAttribute(getattr(NameOID, key.upper()), value) for key, value in names.items()]
    )


@dataclass(frozen=True)
class Leaf:
    """A certificate and its key in files."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates; `file` is what those who trust it are given."""

    def __init__(
        self, directory: Path, name: str = "Test CA", issuer: Authority | None = None
    ) -> None:
        self.directory = directory
        self.name = distinguished(common_name=name)
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.issuer = issuer
        self.file = directory / f"{name.replace(' ', '_')}.pem"
        self.certificate = self._sign(self.name, self.key, is_authority=True)
        self.file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        alternatives: Sequence[x509.GeneralName] = (),
        days: int = 1,
        *,
        is_authority: bool = False,
    ) -> x509.Certificate:
        signer = self.issuer if is_authority and self.issuer is not None else self
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(signer.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - datetime.timedelta(days=1))
            .not_valid_after(NOW + datetime.timedelta(days=days))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.key.public_key()),
                critical=False,
            )
        )
        if is_authority:
            usage = x509.KeyUsage(
                digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
                key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
            )  # fmt: skip
            builder = builder.add_extension(usage, critical=True)
        if alternatives:
            builder = builder.add_extension(
                x509.SubjectAlternativeName(alternatives), critical=False
            )
        return builder.sign(signer.key, hashes.SHA256())

    def issue(
        self,
        file_name: str,
        subject: x509.Name,
        alternatives: Sequence[x509.GeneralName] = (),
        *,
        days: int = 1,
        password: str = "",
    ) -> Leaf:
        """A certificate with its key; the chain below the root is in the certificate's file."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(subject, key, alternatives, days)
        leaf = Leaf(self.directory / f"{file_name}.pem", self.directory / f"{file_name}.key")
        chain = [certificate]
        above: Authority | None = self
        while above is not None and above.issuer is not None:
            chain.append(above.certificate)
            above = above.issuer
        leaf.certificate.write_bytes(
            b"".join(each.public_bytes(serialization.Encoding.PEM) for each in chain)
        )
        how: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password:
            how = serialization.BestAvailableEncryption(password.encode())
        leaf.key.write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)
        )
        leaf.key.chmod(0o600)
        return leaf

    def issue_server(self, file_name: str = "server") -> Leaf:
        """The certificate of a listener on this machine."""
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        names = [x509.DNSName("localhost"), address]
        return self.issue(file_name, distinguished(common_name="localhost"), names)
