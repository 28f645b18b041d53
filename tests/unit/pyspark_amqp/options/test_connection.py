"""`amqp.*` options become addresses."""

from __future__ import annotations

import pytest

from pyspark_amqp.options.connection import Addresses, read_addresses
from pyspark_amqp.options.reading import BadOptions, OptionReader


def addresses(**options: str) -> Addresses:
    reader = OptionReader(
        {f"amqp.{name.replace('_', '.')}": text for name, text in options.items()}
    )
    found = read_addresses(reader)
    reader.finish("read")
    return found


def test_nothing_said_is_the_guest_of_this_machine() -> None:
    (found,) = addresses()
    assert (found.host, found.port, found.vhost, found.user) == ("localhost", 5672, "/", "guest")
    assert found.password == "guest"
    assert found.tls is None


def test_parts() -> None:
    (found,) = addresses(
        host="h", port="1", vhost="v", user="u", password="p", heartbeat="7", connectionName="n"
    )
    assert (found.host, found.port, found.vhost, found.user) == ("h", 1, "v", "u")
    assert (found.find_password(), found.heartbeat_s, found.connection_name) == ("p", 7, "n")


def test_spaces_are_part_of_names_and_passwords_and_line_ends_are_not() -> None:
    (found,) = addresses(vhost=" v", user="u ", password=" p \n")
    assert (found.vhost, found.user, found.password) == (" v", "u ", " p ")
    (found,) = addresses(vhost="", user=" ", password="\n")
    assert (found.vhost, found.user, found.password) == ("/", "guest", "guest")


def test_several_uris_share_the_rest() -> None:
    found = addresses(
        uri="amqp://u@a,amqp://u@b:5/v", passwordEnv="SECRET", connectionTimeoutMs="250"
    )
    assert [(one.host, one.port, one.vhost) for one in found] == [("a", 5672, "/"), ("b", 5, "v")]
    assert {(one.password_env, one.password, one.connect_timeout_s) for one in found} == {
        ("SECRET", None, 0.25)
    }


def test_tls_has_its_port_and_files() -> None:
    (found,) = addresses(
        host="h", tls_enabled="true", tls_cacertfile="/ca", tls_verify="verify_none"
    )
    assert found.port == 5671
    assert found.tls is not None
    assert (found.tls.cacertfile, found.tls.is_verifying) == ("/ca", False)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"uri": "http://h"}, "must begin with amqp://"),
        ({"uri": "amqp://h", "host": "h"}, "option 'amqp.uri' excludes amqp.host"),
        ({"port": "70000"}, "no whole number from 1 to 65535"),
        ({"tls_cacertfile": "/ca"}, "amqp.tls: reading option 'cacertfile': it needs TLS"),
        (
            {"passwordEnv": "A", "passwordFile": "b"},
            "only one of amqp.passwordFile, amqp.passwordEnv",
        ),
        ({"hots": "h"}, "option 'amqp.hots' is not known here; did you mean 'amqp.host'?"),
    ],
)
def test_what_is_wrong_is_named(options: dict[str, str], problem: str) -> None:
    with pytest.raises(BadOptions) as raised:
        addresses(**options)
    assert problem in str(raised.value)


def test_no_text_has_the_password() -> None:
    assert "hunter2" not in repr(addresses(user="u", password="hunter2"))
    with pytest.raises(BadOptions) as raised:
        addresses(uri="amqp://u:hunter2@h:x")
    assert "hunter2" not in str(raised.value)
