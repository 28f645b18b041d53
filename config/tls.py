"""The TLS options of a listener: which keys there are, what they make, and the context that they make it into.

Three prefixes take the same keys: `ssl_options` (AMQP), `management.ssl` and `prometheus.ssl`. `compose` declares
them from `KEYS` and fills a `TlsConfig`, `load` tries `make_context` so that a wrong file is an error with its line,
and the node makes the contexts that its listeners use. Owns no state; reads the named files.

Invariants: nothing older than TLS 1.2 is offered and a client cannot renegotiate; a passphrase is never asked for at a
terminal. Source: RabbitMQ's TLS guide and the options of Erlang's ssl application that it passes on.
"""

from __future__ import annotations

import contextlib
import os
import re
import ssl
from collections.abc import Iterable, Iterator
from dataclasses import field

from burrowmq.config import units
from burrowmq.config.option import Option
from burrowmq.records import dataclass

OLD_VERSIONS = ("tlsv1.1", "tlsv1", "sslv3")
"""Names that RabbitMQ still takes; OpenSSL 3 does not offer them either."""

OF_TLS_1_3 = {"TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256"}
"""The suites of TLS 1.3 that OpenSSL offers."""

PEM_SIZE_MAX = 16 << 20
"""A bundle of all authorities that a browser knows is a hundredth of it."""

_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----")


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsConfig:
    """What a TLS listener is made with; `depth` counts the certificates between the peer's and the authority's."""

    cacertfile: str | None = None
    certfile: str | None = None
    keyfile: str | None = None
    password: str | None = field(default=None, repr=False)
    verify: str = "verify_none"
    fail_if_no_peer_cert: bool = False
    depth: int = 10
    honor_cipher_order: bool = True
    versions: tuple[str, ...] = ("tlsv1.2", "tlsv1.3")
    ciphers: tuple[str, ...] = ()


NO_TLS = TlsConfig()


KEYS = (
    Option("cacertfile", units.readable_file, None, "Certificates of the authorities that vouch for clients, PEM."),
    Option("certfile", units.readable_file, None,
           "The listener's certificate and those between it and its authority, PEM."),
    Option("keyfile", units.readable_file, None, "The certificate's private key, PEM."),
    Option("password", units.text, None, "Passphrase of an encrypted private key."),
    Option("verify", units.choice("verify_peer", "verify_none"), "verify_none",
           "`verify_peer`: ask clients for a certificate and check it."),
    Option("fail_if_no_peer_cert", units.flag, "false", "With `verify_peer`: refuse clients that have none."),
    Option("depth", units.integer(0, 255), "10",
           "How many certificates may stand between a client's and its authority's."),
    Option("honor_cipher_order", units.flag, "true", "The listener's order of ciphers decides, not the client's."),
    Option("versions.$n", units.choice("tlsv1.3", "tlsv1.2", *OLD_VERSIONS), None,
           "Versions to offer: `tlsv1.2`, `tlsv1.3` (both, if none is named); older ones are never offered."),
    Option("ciphers.$n", units.text, None,
           "Cipher suites of TLS 1.2 to offer, OpenSSL's names; with TLS 1.3 names only, TLS 1.2 is not offered."),
)  # fmt: skip


class BadTls(Exception):
    """A TLS option that cannot be used: `key` is its name below the prefix."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


def make_context(tls: TlsConfig) -> ssl.SSLContext:
    """Return the context of a listener.

    Raises: BadTls naming the option that is to blame.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    if not tls.honor_cipher_order:
        context.options &= ~ssl.OP_CIPHER_SERVER_PREFERENCE
    _set_versions(context, tls)
    _load_certificate(context, tls)
    _load_authorities(context, tls)
    return context


def _set_versions(context: ssl.SSLContext, tls: TlsConfig) -> None:
    versions = {name for name in tls.versions if name not in OLD_VERSIONS}
    older = [name for name in tls.ciphers if not name.startswith("TLS_")]
    if tls.ciphers and not older:
        versions.discard("tlsv1.2")
    if not versions:
        raise BadTls("versions", "neither tlsv1.2 nor tlsv1.3 is left to offer")
    known = {"tlsv1.2": ssl.TLSVersion.TLSv1_2, "tlsv1.3": ssl.TLSVersion.TLSv1_3}
    context.minimum_version = min(known[name] for name in versions)
    context.maximum_version = max(known[name] for name in versions)
    if older:
        try:
            context.set_ciphers(":".join(older))
        except ssl.SSLError:
            raise BadTls("ciphers", "none of these is a cipher suite that can be used") from None


def idle_ciphers(tls: TlsConfig) -> Iterator[tuple[str, str]]:
    """Yield each suite that is named for nothing, with the reason."""
    newest = [name for name in tls.ciphers if name.startswith("TLS_") and "_WITH_" not in name]
    for name in tls.ciphers:
        is_newest = name in newest
        if "_WITH_" in name:
            yield name, "OpenSSL has another name for it, to be written here"
        elif ("tlsv1.3" if is_newest else "tlsv1.2") not in tls.versions:
            yield name, f"TLS {'1.3' if is_newest else '1.2'} is not offered"
        elif is_newest and not set(newest) >= OF_TLS_1_3:
            yield name, "all suites of TLS 1.3 are offered; none can be left out"
        elif not is_newest and not _is_offered(name):
            yield name, "OpenSSL does not offer it"


def _is_offered(name: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ciphers(name)
    except ssl.SSLError:
        return False
    return True


def _check_file(key: str, path: str) -> None:
    """Refuse what would keep who reads it: a pipe that came in a file's place, or more than fits into memory."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise BadTls(key, f"{path} is no file")
    with contextlib.suppress(OSError):
        if os.path.getsize(path) > PEM_SIZE_MAX:
            raise BadTls(key, f"{path} is larger than {PEM_SIZE_MAX} bytes")


def _pem_kinds(key: str, path: str) -> list[str]:
    _check_file(key, path)
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return _PEM.findall(file.read())
    except OSError as error:
        raise BadTls(key, f"{path} cannot be read: {error.strerror}") from None


def _load_certificate(context: ssl.SSLContext, tls: TlsConfig) -> None:
    if tls.certfile is None:
        raise BadTls("certfile", "a TLS listener needs a certificate, and none is set")
    if "CERTIFICATE" not in _pem_kinds("certfile", tls.certfile):
        raise BadTls("certfile", f"{tls.certfile} holds no PEM certificate")
    key, path = ("keyfile", tls.keyfile) if tls.keyfile else ("certfile", tls.certfile)
    kinds = _pem_kinds(key, path)
    if not any(kind.endswith("PRIVATE KEY") for kind in kinds):
        raise BadTls(key, f"{path} holds no PEM private key")
    password = tls.password or ""
    asked: list[bool] = []

    def answer() -> str:
        asked.append(True)
        return password

    try:
        context.load_cert_chain(tls.certfile, tls.keyfile, answer)
    except (ssl.SSLError, ValueError, OSError) as error:
        reason = getattr(error, "reason", None) or str(error)
        if asked:
            text = "does not open" if password else "is not set, and it is needed for"
            raise BadTls("password", f"{text} the private key in {path}") from None
        if reason == "KEY_VALUES_MISMATCH":
            raise BadTls(key, f"{path} is not the key of the certificate {tls.certfile}") from None
        raise BadTls(
            key, f"{tls.certfile} and {path} cannot be used: {_words(str(reason))}"
        ) from None


def _load_authorities(context: ssl.SSLContext, tls: TlsConfig) -> None:
    if tls.cacertfile is not None:
        _check_file("cacertfile", tls.cacertfile)
        try:
            context.load_verify_locations(tls.cacertfile)
        except (ssl.SSLError, OSError):
            raise BadTls("cacertfile", f"{tls.cacertfile} holds no PEM certificate") from None
    if tls.verify == "verify_none":
        if tls.fail_if_no_peer_cert:
            text = "without verify = verify_peer no client is asked for a certificate, and all would get in"
            raise BadTls("fail_if_no_peer_cert", text)
        return
    if tls.cacertfile is None:
        raise BadTls("cacertfile", "verify_peer needs the certificates of authorities to check by")
    context.verify_mode = ssl.CERT_REQUIRED if tls.fail_if_no_peer_cert else ssl.CERT_OPTIONAL


def _words(reason: str) -> str:
    return reason.lower().replace("_", " ")


def open_keys(tls: TlsConfig) -> Iterable[str]:
    """Yield a warning for a private key that other users of the machine can read."""
    path = tls.keyfile or tls.certfile
    try:
        mode = os.stat(path).st_mode if path else 0
    except OSError:
        return
    if mode & 0o004:
        yield f"private key {path} can be read by every user of this machine"
