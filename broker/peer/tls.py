"""What a TLS handshake settled: version, cipher suite in Erlang's words, the client's certificate.

Made by the node for each connection of a TLS listener and kept with its `Peer`; operators see it in list_connections
and the HTTP API, `broker.session.admission` takes the user name of EXTERNAL from it. No state, no I/O: it reads the
finished handshake's `ssl.SSLObject`, which is all that it knows of OpenSSL.

Source: RabbitMQ's rabbit_ssl, rabbit_reader's ssl_* and peer_cert_* items.
"""

from __future__ import annotations

from typing import Any

from burrowmq.broker.peer.certificate import Certificate
from burrowmq.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsPeer:
    """The settled parameters, and the client's certificate if it presented one that can be read."""

    protocol: str
    key_exchange: str
    cipher: str
    hash: str
    certificate: Certificate | None = None


class ChainTooLong(Exception):
    """More certificates stand between the client's and its authority's than are allowed."""


def peer_of(ssl_object: Any, depth: int) -> TlsPeer:
    """The facts of a finished handshake.

    Raises: ChainTooLong.
    """
    der = ssl_object.getpeercert(binary_form=True)
    if der and _between(ssl_object) > depth:
        raise ChainTooLong(
            f"the client's certificate is more than {depth} steps from its authority"
        )
    name, _, _ = ssl_object.cipher()
    version = ssl_object.version()
    key_exchange, cipher, mac = suite_words(str(name))
    return TlsPeer(
        protocol=str(version).lower(),
        key_exchange=key_exchange,
        cipher=cipher,
        hash=mac,
        certificate=_certificate(der) if der else None,
    )


def _certificate(der: bytes) -> Certificate | None:
    from burrowmq.broker.peer import fields  # noqa: PLC0415 - 17 MB, for nodes that look at certificates

    try:
        return fields.read(der)
    except ValueError:
        return None  # OpenSSL believes it, and we cannot name it: EXTERNAL is refused, PLAIN is not


def _between(ssl_object: Any) -> int:
    """How many certificates stand between the client's and its authority's."""
    # Public from Python 3.13 on; before that, only the object beneath has it.
    found = getattr(ssl_object, "get_verified_chain", None)
    chain = (found or ssl_object._sslobj.get_verified_chain)()
    return max(0, len(chain or ()) - 2)


def suite_words(name: str) -> tuple[str, str, str]:
    """Key exchange, cipher and hash of an OpenSSL cipher suite, as Erlang names them."""
    if name.startswith("TLS_"):
        words, key_exchange = name.removeprefix("TLS_").split("_"), "any"
        return key_exchange, "_".join(words[:-1]).lower(), "aead"
    words = name.split("-")
    start = next(
        (
            at
            for at, word in enumerate(words)
            if word.startswith(("AES", "CHACHA", "CAMELLIA", "ARIA"))
        ),
        len(words) - 1,
    )
    key_exchange = "_".join(words[:start]).lower() or "rsa"
    cipher = _cipher_words(words[start:])
    if {"GCM", "CCM", "CCM8", "POLY1305"} & set(words):
        return key_exchange, "_".join(cipher), "aead"
    return key_exchange, "_".join([*cipher, "cbc"]), words[-1].lower()


def _cipher_words(words: list[str]) -> list[str]:
    """`AES256 GCM SHA384` as `aes 256 gcm`: the hash is left out, number and name are parted."""
    shown: list[str] = []
    for word in words:
        if word.startswith("SHA"):
            break
        family = word.rstrip("0123456789") if word[:3] in {"AES", "CAM", "ARI"} else word
        shown += [part for part in (family.lower(), word[len(family) :]) if part]
    return shown
