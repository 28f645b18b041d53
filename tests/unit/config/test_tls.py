"""burrowmq.config.tls: contexts from files, and the option that is to blame when there is none."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest

from burrowmq.config.errors import ConfigError
from burrowmq.config.load import load
from burrowmq.config.tls import BadTls, TlsConfig, make_context, open_keys
from burrowmq.config.units import Endpoint
from tests.support.certificates import Authority, Leaf, distinguished


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def server(authority: Authority) -> Leaf:
    return authority.issue_server()


def tls(leaf: Leaf, **options: object) -> TlsConfig:
    given = {"certfile": str(leaf.certificate), "keyfile": str(leaf.key), **options}
    return TlsConfig(**given)  # type: ignore[arg-type]


def test_nothing_older_than_tls_1_2_and_no_renegotiation(server):
    context = make_context(tls(server))
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.maximum_version == ssl.TLSVersion.TLSv1_3
    assert context.options & ssl.OP_NO_RENEGOTIATION
    assert context.options & ssl.OP_CIPHER_SERVER_PREFERENCE
    assert context.verify_mode == ssl.CERT_NONE
    assert not make_context(tls(server, honor_cipher_order=False)).options & (
        ssl.OP_CIPHER_SERVER_PREFERENCE
    )


@pytest.mark.parametrize(
    "prefix", ["ssl_options", "management.ssl", "management.listener.ssl_opts"]
)
def test_a_certificate_is_demanded_only_where_it_is_asked_for(server, tmp_path, prefix):
    listeners = {
        "ssl_options": ["listeners.ssl.default = 5671"],
        "management.ssl": ["management.ssl.port = 15671"],
        "management.listener.ssl_opts": ["management.listener.ssl = true", "management.listener.port = 15671"],
    }  # fmt: skip
    lines = [
        *listeners[prefix],
        f"{prefix}.certfile = {server.certificate}",
        f"{prefix}.keyfile = {server.key}",
        f"{prefix}.fail_if_no_peer_cert = true",
    ]
    file = tmp_path / "rabbitmq.conf"
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(ConfigError) as refused:
        load(str(file), {}, (), None)
    (problem,) = refused.value.problems
    assert (problem.line, problem.key) == (len(lines), f"{prefix}.fail_if_no_peer_cert")
    assert problem.reason == (
        "without verify = verify_peer no client is asked for a certificate, and all would get in"
    )


def test_versions(server):
    only = make_context(tls(server, versions=("tlsv1.2", "tlsv1.1")))
    assert (only.minimum_version, only.maximum_version) == (ssl.TLSVersion.TLSv1_2,) * 2
    with pytest.raises(BadTls, match=r"^versions: "):
        make_context(tls(server, versions=("tlsv1.1",)))


def test_ciphers(server):
    suite = "ECDHE-ECDSA-AES256-GCM-SHA384"
    both = make_context(tls(server, ciphers=(suite, "TLS_AES_256_GCM_SHA384")))
    assert {each["name"] for each in both.get_ciphers() if each["protocol"] == "TLSv1.2"} == {suite}
    newest = make_context(tls(server, ciphers=("TLS_AES_256_GCM_SHA384",)))
    assert newest.minimum_version == ssl.TLSVersion.TLSv1_3
    with pytest.raises(BadTls, match=r"^ciphers: "):
        make_context(tls(server, ciphers=("NO-SUCH-SUITE",)))


GOOD = "ECDHE-ECDSA-AES256-GCM-SHA384"
OF_TLS_1_3 = ("TLS_AES_256_GCM_SHA384", "TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256")
UNCHOSEN = "all suites of TLS 1.3 are offered; none can be left out"


@pytest.mark.parametrize(
    ("ciphers", "versions", "idle"),
    [
        ((GOOD, *OF_TLS_1_3), (), {}),
        ((GOOD, "ECDHE-ECDSA-AES256-GCM-SHA385"), (), {1: "OpenSSL does not offer it"}),
        ((GOOD,), ("tlsv1.3",), {0: "TLS 1.2 is not offered"}),
        ((GOOD, *OF_TLS_1_3), ("tlsv1.2",), dict.fromkeys((1, 2, 3), "TLS 1.3 is not offered")),
        ((GOOD, OF_TLS_1_3[0]), (), {1: UNCHOSEN}),
        (
            (GOOD, "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
            (),
            {1: "OpenSSL has another name for it, to be written here"},
        ),
    ],
)
@pytest.mark.parametrize("prefix", ["ssl_options", "management.listener.ssl_opts"])
def test_suites_that_are_named_for_nothing_are_told(
    server, tmp_path, prefix, ciphers, versions, idle
):
    lines = [
        "listeners.ssl.default = 5671"
        if prefix == "ssl_options"
        else "management.listener.ssl = true",
        f"{prefix}.certfile = {server.certificate}",
        f"{prefix}.keyfile = {server.key}",
        *(f"{prefix}.versions.{number} = {each}" for number, each in enumerate(versions)),
        *(f"{prefix}.ciphers.{number} = {each}" for number, each in enumerate(ciphers)),
    ]
    file = tmp_path / "rabbitmq.conf"
    file.write_text("\n".join(lines) + "\n")
    first = len(lines) - len(ciphers) + 1
    assert load(str(file), {}, (), None).warnings == tuple(
        f"{file}:{first + at}: {prefix}.ciphers.{at} has no effect here: {why}"
        for at, why in idle.items()
    )


def test_clients_are_asked_for_a_certificate(server, authority):
    options = {"cacertfile": str(authority.file), "verify": "verify_peer"}
    assert make_context(tls(server, **options)).verify_mode == ssl.CERT_OPTIONAL
    strict = make_context(tls(server, fail_if_no_peer_cert=True, **options))
    assert strict.verify_mode == ssl.CERT_REQUIRED


def test_the_key_may_stand_with_the_certificate(server, tmp_path):
    both = tmp_path / "both.pem"
    both.write_bytes(server.certificate.read_bytes() + server.key.read_bytes())
    make_context(TlsConfig(certfile=str(both)))


def test_an_encrypted_key_needs_its_passphrase(authority):
    locked = authority.issue("locked", distinguished(common_name="x"), password="open sesame")
    make_context(tls(locked, password="open sesame"))
    for password in (None, "wrong"):
        with pytest.raises(BadTls, match=r"^password: ") as caught:
            make_context(tls(locked, password=password))
        assert "open sesame" not in str(caught.value)
    assert "wrong" not in repr(tls(locked, password="wrong"))


def test_the_option_to_blame_is_named(server, authority, tmp_path):
    other = authority.issue_server("other")
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing\n")
    broken = tmp_path / "broken.pem"
    broken.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    certificate, key = str(server.certificate), str(server.key)
    peer = {"verify": "verify_peer"}
    for options, blamed in (
        (TlsConfig(), "certfile"),
        (TlsConfig(certfile=str(empty), keyfile=key), "certfile"),
        (TlsConfig(certfile=str(tmp_path / "missing"), keyfile=key), "certfile"),
        (TlsConfig(certfile=certificate, keyfile=str(empty)), "keyfile"),
        (TlsConfig(certfile=certificate), "certfile"),
        (TlsConfig(certfile=certificate, keyfile=str(other.key)), "keyfile"),
        (TlsConfig(certfile=str(broken), keyfile=key), "keyfile"),
        (tls(server, cacertfile=str(empty)), "cacertfile"),
        (tls(server, **peer), "cacertfile"),
    ):
        with pytest.raises(BadTls) as caught:
            make_context(options)
        assert caught.value.key == blamed, options


@pytest.mark.parametrize("key", ["certfile", "keyfile", "cacertfile"])
def test_what_nobody_could_read_to_its_end_is_refused(server, tmp_path, key):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", 1 << 40)
    for name, reason in (("pipe", "is no file"), ("huge", "is larger than 16777216 bytes")):
        with pytest.raises(BadTls, match=rf"{key}: .*/{name} {reason}"):
            make_context(tls(server, **{key: str(tmp_path / name)}))


def test_a_key_that_everybody_can_read_is_a_warning(server):
    assert list(open_keys(tls(server))) == []
    server.key.chmod(0o644)
    (warning,) = open_keys(tls(server))
    server.key.chmod(0o600)
    assert str(server.key) in warning
    assert list(open_keys(TlsConfig(certfile="/missing"))) == []


def conf(tmp_path: Path, *lines: str) -> str:
    file = tmp_path / "rabbitmq.conf"
    file.write_text("\n".join(lines) + "\n")
    return str(file)


def test_a_bad_file_is_an_error_with_its_line(tmp_path, server, authority):
    other = authority.issue_server("another")
    path = conf(
        tmp_path,
        "listeners.ssl.default = 127.0.0.1:5671",
        f"ssl_options.certfile = {server.certificate}",
        f"ssl_options.keyfile = {other.key}",
    )
    with pytest.raises(ConfigError) as caught:
        load(path, {}, (), None)
    (problem,) = caught.value.problems
    assert (problem.line, problem.key) == (3, "ssl_options.keyfile")
    assert "is not the key of the certificate" in problem.reason


@pytest.mark.parametrize(
    "listener", ["listeners.ssl.1", "management.ssl.port", "prometheus.ssl.port"]
)
def test_a_listener_without_a_certificate_is_an_error_at_the_listener(tmp_path, listener):
    with pytest.raises(ConfigError) as caught:
        load(conf(tmp_path, "heartbeat = 60", f"{listener} = 5671"), {}, (), None)
    (problem,) = caught.value.problems
    assert problem.line == 2
    assert problem.key.endswith(".certfile")


def test_what_a_configuration_makes(tmp_path, server, authority):
    files = f"certfile = {server.certificate}", f"keyfile = {server.key}"
    path = conf(
        tmp_path,
        "listeners.ssl.1 = 5671",
        *(f"{prefix}.{line}" for prefix in ("ssl_options", "management.ssl") for line in files),
        "ssl_options.versions.1 = tlsv1.3",
        "management.ssl.port = 15671",
        "management.ssl.ip = ::1",
        "auth_mechanisms.2 = PLAIN",
        "auth_mechanisms.1 = EXTERNAL",
        "auth_mechanisms.10 = PLAIN",
        "ssl_options.versions.2 = tlsv1.1",
    )
    loaded = load(path, {}, (), None)
    config = loaded.config
    assert config.tls_listeners == (Endpoint("0.0.0.0", 5671), Endpoint("::", 5671))
    assert config.tls.versions == ("tlsv1.3",)
    assert (config.management.tls_listeners, config.management.listeners) == (
        (Endpoint("::1", 15671),),
        (),
    )
    assert config.management.tls.keyfile == str(server.key)
    assert config.prometheus.listeners
    assert config.login.mechanisms == ("EXTERNAL", "PLAIN")
    old, unasked = loaded.warnings
    assert "tlsv1.1 has no effect" in old
    assert "auth_mechanisms.1 has no effect" in unasked
    off = load(None, {}, [("listeners.ssl", "none"), ("listeners.ssl.1", "5671")], None)
    assert off.config.tls_listeners == ()
