"""burrowmq.broker.peer.tls: cipher suites in Erlang's words, chains that are too long."""

from __future__ import annotations

import pytest

from burrowmq.broker.peer.tls import ChainTooLong, peer_of, suite_words


@pytest.mark.parametrize(
    ("suite", "words"),
    [
        ("TLS_AES_256_GCM_SHA384", ("any", "aes_256_gcm", "aead")),
        ("TLS_CHACHA20_POLY1305_SHA256", ("any", "chacha20_poly1305", "aead")),
        ("ECDHE-RSA-AES256-GCM-SHA384", ("ecdhe_rsa", "aes_256_gcm", "aead")),
        ("ECDHE-ECDSA-CHACHA20-POLY1305", ("ecdhe_ecdsa", "chacha20_poly1305", "aead")),
        ("DHE-RSA-AES128-SHA256", ("dhe_rsa", "aes_128_cbc", "sha256")),
        ("AES128-SHA", ("rsa", "aes_128_cbc", "sha")),
        ("ECDHE-ECDSA-AES128-CCM8", ("ecdhe_ecdsa", "aes_128_ccm8", "aead")),
        ("ECDHE-RSA-CAMELLIA256-SHA384", ("ecdhe_rsa", "camellia_256_cbc", "sha384")),
    ],
)
def test_suites(suite, words):
    assert suite_words(suite) == words


class Handshake:
    """A finished handshake, as far as it is asked."""

    def __init__(self, der: bytes, chain: int) -> None:
        self._der = der
        self._chain = chain

    def getpeercert(self, binary_form: bool) -> bytes:
        assert binary_form
        return self._der

    def cipher(self) -> tuple[str, str, int]:
        return ("TLS_AES_128_GCM_SHA256", "TLSv1.3", 128)

    def version(self) -> str:
        return "TLSv1.3"

    def get_verified_chain(self) -> list[bytes]:
        return [b""] * self._chain


def test_a_chain_may_be_as_long_as_allowed():
    assert peer_of(Handshake(b"?", 3), 1).protocol == "tlsv1.3"
    with pytest.raises(ChainTooLong):
        peer_of(Handshake(b"?", 3), 0)


def test_a_certificate_that_cannot_be_named_is_none():
    assert peer_of(Handshake(b"?", 2), 10).certificate is None
    assert peer_of(Handshake(b"", 0), 0).certificate is None
