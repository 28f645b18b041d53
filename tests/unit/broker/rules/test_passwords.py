"""burrowmq.broker.rules.passwords, alone and behind a login."""

from __future__ import annotations

import hashlib
from base64 import b64encode

import pytest

from burrowmq.broker.rules import passwords
from burrowmq.broker.rules.auth import LoginRefused
from burrowmq.broker.rules.passwords import (
    MD5,
    SHA256,
    SHA512,
    algorithm_of,
    fault_of,
    hash_password,
)
from tests.support.bench.broker import BrokerBench


def test_the_hash_is_rabbitmqs() -> None:
    # The documented example: salt 908D C60A, password test12.
    salt = bytes.fromhex("908DC60A")
    assert hash_password("test12", salt) == "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"


@pytest.mark.parametrize("stored", ["", "not base64!", "AAAA"])
def test_a_damaged_or_blank_hash_fits_no_password(stored: str) -> None:
    auth = BrokerBench().auth
    auth.put_user("bob", stored)
    with pytest.raises(LoginRefused):
        auth.authenticate("bob", "x", is_loopback=True)


def test_an_imported_sha512_hash_fits() -> None:
    salt = b"salt"
    stored = b64encode(salt + hashlib.sha512(salt + b"pw").digest()).decode()
    auth = BrokerBench().auth
    auth.put_user("bob", stored, hashing_algorithm=SHA512)
    assert auth.authenticate("bob", "pw", is_loopback=True)


@pytest.mark.parametrize(
    ("name", "algorithm"), [("md5", MD5), ("sha256", SHA256), ("sha512", SHA512)]
)
def test_a_hash_tells_its_algorithm_by_its_length(name: str, algorithm: str) -> None:
    salt = b"salt"
    stored = b64encode(salt + hashlib.new(name, salt + b"pw").digest()).decode()
    assert algorithm_of(stored) == algorithm
    auth = BrokerBench().auth
    auth.put_user("bob", stored, hashing_algorithm=algorithm_of(stored))
    assert auth.authenticate("bob", "pw", is_loopback=True)
    with pytest.raises(LoginRefused):
        auth.authenticate("bob", "wrong", is_loopback=True)


@pytest.mark.parametrize(
    ("given", "size"), [("AAAA", 3), (b64encode(bytes(36)).decode(), None), ("", None)]
)
def test_a_hash_has_the_length_of_its_algorithm(given: str, size: int | None) -> None:
    told = "" if size is None else f"a hash of {SHA256} has 36 octets, this one has {size}"
    assert fault_of(given, SHA256) == told
    if given:
        assert "has 68 octets" in fault_of(given, SHA512)


def test_what_is_no_hash_has_no_algorithm() -> None:
    assert algorithm_of("") == algorithm_of("AAAA") == SHA256
    with pytest.raises(ValueError, match=r"."):
        algorithm_of("not base64!")


@pytest.mark.parametrize(
    "kept", ["", "not base64!", "AAAA", "\xe9", hash_password("other", b"salt")]
)
def test_a_refusal_costs_one_digest_whatever_is_kept(
    kept: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the time would tell which users are there, and which of them log in with a password."""
    digested = []

    def digest(octets: bytes = b"") -> object:
        digested.extend([octets] if octets else [])
        return hashlib.sha256(octets)

    monkeypatch.setitem(passwords._DIGESTS, SHA256, digest)
    auth = BrokerBench().auth
    if kept:
        auth.put_user("bob", kept)
    for given in ("right", ""):
        digested.clear()
        with pytest.raises(LoginRefused):
            auth.authenticate("bob", given, is_loopback=True)
        assert [len(octets) for octets in digested] == [4 + len(given)]
