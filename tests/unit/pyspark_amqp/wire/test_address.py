from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from pyspark_amqp.wire.address import Address, Tls, parse_address, parse_addresses
from pyspark_amqp.wire.errors import BadAddress


def test_what_is_left_open_has_rabbitmq_s_defaults() -> None:
    assert parse_address("amqp://") == Address()
    assert parse_address("amqps://h") == Address(host="h", port=5671, tls=Tls())


def test_all_parts_are_unquoted() -> None:
    found = parse_address("amqp://us%40er:p%2Fa%3Ass@h.example:99/a%2Fb")
    assert (found.user, found.password, found.host, found.port, found.vhost) == (
        "us@er",
        "p/a:ss",
        "h.example",
        99,
        "a/b",
    )


@pytest.mark.parametrize(
    ("uri", "vhost"),
    [("amqp://h", "/"), ("amqp://h/", ""), ("amqp://h/%2F", "/"), ("amqp://h/v", "v")],
)
def test_the_virtual_host(uri: str, vhost: str) -> None:
    assert parse_address(uri).vhost == vhost


def test_ipv6() -> None:
    found = parse_address("amqp://[::1]:5673/v")
    assert (found.host, found.port) == ("::1", 5673)
    assert found.place == "amqp://[::1]:5673 (virtual host 'v')"


def test_options() -> None:
    found = parse_address(
        "amqps://h?heartbeat=10&connection_timeout=2500&verify=verify_none"
        "&cacertfile=/ca&certfile=/c&keyfile=/k&server_name_indication=other"
    )
    assert (found.heartbeat_s, found.connect_timeout_s) == (10, 2.5)
    assert found.tls == Tls(
        cacertfile="/ca", certfile="/c", keyfile="/k", is_verifying=False, server_name="other"
    )


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("http://h", "amqp://"),
        ("h:5672", "amqp://"),
        ("amqp://h/a/b", "%2F"),
        ("amqp://h?heartbeat=soon", "heartbeat"),
        ("amqp://h?heartbeat=70000", "65535"),
        ("amqp://h?verify=verify_none", "amqps://"),
        ("amqps://h?verify=maybe", "verify_peer"),
        ("amqps://h?verfy=verify_none", "verfy"),
        ("amqp://h:port", "host and port"),
    ],
)
def test_mistakes_are_named(uri: str, says: str) -> None:
    with pytest.raises(BadAddress, match=says):
        parse_address(uri)


def test_an_unescaped_password_is_not_repeated() -> None:
    with pytest.raises(BadAddress) as caught:
        parse_address("amqp://user:sec#ret@h")
    assert "sec" not in str(caught.value).replace("second", "")
    assert caught.value.__cause__ is None


def test_several_addresses_keep_their_order() -> None:
    assert [one.host for one in parse_addresses("amqp://b, amqp://a")] == ["b", "a"]
    with pytest.raises(BadAddress, match="empty"):
        parse_addresses(" , ")


def test_no_text_shows_the_password() -> None:
    found = parse_address("amqp://u:secret@h")
    assert "secret" not in repr(found)
    assert "secret" not in found.place


def test_a_password_from_a_file_is_not_pickled(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("from file\n")
    address = Address(password=None, password_file=str(tmp_path / "password"))
    assert b"from file" not in pickle.dumps(address)
    assert pickle.loads(pickle.dumps(address)).find_password() == "from file"


def test_a_password_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    address = Address(password=None, password_env="SPARK_TEST_PASSWORD")
    with pytest.raises(BadAddress, match="SPARK_TEST_PASSWORD is not set"):
        address.find_password()
    monkeypatch.setenv("SPARK_TEST_PASSWORD", "from environment")
    assert address.find_password() == "from environment"


def test_a_missing_password_file_and_certificate_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadAddress, match="password file"):
        Address(password_file=str(tmp_path / "none")).find_password()
    with pytest.raises(BadAddress, match="certificates"):
        Tls(cacertfile=str(tmp_path / "none")).context("here")
