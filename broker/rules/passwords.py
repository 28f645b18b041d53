"""Passwords as RabbitMQ keeps them: base64 of four octets of salt and a digest of salt and password.

Owns no state. SHA-256 unless the user's record names another algorithm (imports do). `broker.rules.auth` compares,
management and definitions hash. An empty password never fits.

Source: RabbitMQ's rabbit_password, rabbit_password_hashing_sha256 and its neighbours.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

SALT_SIZE = 4
SHA256 = "rabbit_password_hashing_sha256"
SHA512 = "rabbit_password_hashing_sha512"
MD5 = "rabbit_password_hashing_md5"
_DIGESTS: dict[str, Callable[..., Any]] = {
    SHA256: hashlib.sha256,
    SHA512: hashlib.sha512,
    MD5: functools.partial(hashlib.md5, usedforsecurity=False),  # exports of RabbitMQ up to 3.5
}
ALGORITHMS = frozenset(_DIGESTS)


def hash_password(password: str, salt: bytes) -> str:
    """The hash as it is kept: base64 of the salt and the digest."""
    octets = password.encode("utf-8", "surrogateescape")
    return b64encode(salt + hashlib.sha256(salt + octets).digest()).decode("ascii")


def fits(password_hash: str, algorithm: str, password: str) -> bool:
    """Whether this is the password, in time that depends neither on where it differs nor on what is kept.

    A blank or damaged hash, which fits nothing, is compared as if it were one.
    """
    digest = _DIGESTS.get(algorithm, hashlib.sha256)
    try:
        raw = b64decode(password_hash, validate=True)
    except ValueError:
        raw = b""
    is_hash = len(raw) == SALT_SIZE + digest().digest_size
    if not is_hash:
        raw = bytes(SALT_SIZE + digest().digest_size)
    salt, kept = raw[:SALT_SIZE], raw[SALT_SIZE:]
    given = digest(salt + password.encode("utf-8", "surrogateescape")).digest()
    return hmac.compare_digest(kept, given) and is_hash and bool(password)


def fault_of(password_hash: str, algorithm: str) -> str:
    """Why no password can ever fit this hash, "" when one can; a blank hash is one that means to fit none.

    Raises: ValueError when the text is not base64.
    """
    size, wanted = len(b64decode(password_hash, validate=True)), SALT_SIZE + _size_of(algorithm)
    return (
        f"a hash of {algorithm} has {wanted} octets, this one has {size}"
        if 0 < size != wanted
        else ""
    )


def _size_of(algorithm: str) -> int:
    return int(_DIGESTS.get(algorithm, hashlib.sha256)().digest_size)


def algorithm_of(password_hash: str) -> str:
    """The algorithm of a hash that does not name it, told by its length.

    Raises: ValueError when the text is not base64.
    """
    size = len(b64decode(password_hash, validate=True)) - SALT_SIZE
    found = (name for name in _DIGESTS if _size_of(name) == size)
    return next(found, SHA256)
