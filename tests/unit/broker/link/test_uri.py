from __future__ import annotations

import pytest

from burrowmq.broker.link.uri import BadUri, TlsWish, build, parse, public


def test_without_a_host_it_leads_into_this_node() -> None:
    assert parse("amqp://", "own").is_local
    assert parse("amqp://", "own").vhost == "own"
    assert parse("amqp:///other", "own").vhost == "other"
    named = parse("amqp://alice@/v%2Fw", "own")
    assert (named.username, named.password, named.vhost) == ("alice", None, "v/w")


def test_with_a_host() -> None:
    found = parse(
        "amqp://a%40b:p%3Aq@rabbit.example:5673/%2F?heartbeat=5&connection_timeout=900", "x"
    )
    assert (found.host, found.port, found.vhost) == ("rabbit.example", 5673, "/")
    assert (found.username, found.password) == ("a@b", "p:q")
    assert (found.heartbeat_s, found.connection_timeout_ms) == (5, 900)
    assert found.tls is None
    plain = parse("amqp://host", "own")
    assert (plain.port, plain.vhost, plain.username, plain.password) == (
        5672,
        "own",
        "guest",
        "guest",
    )
    assert parse("amqp://host/", "own").vhost == ""
    assert parse("amqp://[::1]:5", "own").host == "::1"


def test_an_address_of_a_link_has_its_interface() -> None:
    uri = "amqp://me:secret@[fe80::1%25eth0]:5673/v"
    assert (parse(uri, "own").host, parse(uri, "own").port) == ("fe80::1%eth0", 5673)
    assert public(uri) == "amqp://[fe80::1%25eth0]:5673/v"
    assert parse("amqp://[fe80::1%252]", "own").host == "fe80::1%2"


def test_amqps_says_how_it_is_verified() -> None:
    found = parse(
        "amqps://host?cacertfile=/c&certfile=/a&keyfile=/k&password=x&verify=verify_peer"
        "&server_name_indication=other&auth_mechanism=external&auth_mechanism=plain",
        "/",
    )
    assert found.port == 5671
    assert found.mechanisms == ("external", "plain")
    assert found.tls == TlsWish(
        cacertfile="/c",
        certfile="/a",
        keyfile="/k",
        password="x",
        is_verified=True,
        server_name="other",
    )
    off = parse("amqps://host?server_name_indication=disable", "/").tls
    assert off == TlsWish(server_name="")


@pytest.mark.parametrize(
    ("uri", "term"),
    [
        ("http://x", '{unexpected_uri_scheme,"http"}'),
        ("amqp://u:p@h:99999/v", "{port_out_of_range,99999}"),
        ("amqp://h/a/b", '{invalid_vhost,"a/b"}'),
        (
            "amqp://h?heartbeat=x",
            '{invalid_amqp_params_parameter,heartbeat,"x",[{"heartbeat","x"}],{not_an_integer,"x"}}',
        ),
        ("amqp://a:b:c@h", '{invalid_userinfo,"3 parts"}'),
        ("nonsense", "{unable_to_parse_uri,no_scheme}"),
        ("amqp://h:1x", '{unable_to_parse_uri,{malformed_uri,"amqp://h:1x"}}'),
    ],
)
def test_what_is_no_uri_is_refused_as_rabbitmq_does(uri: str, term: str) -> None:
    with pytest.raises(BadUri) as refused:
        parse(uri, "/")
    assert refused.value.term == term


def test_nothing_secret_is_shown() -> None:
    assert public("amqps://u:p@h:1/v?password=x") == "amqps://h:1/v"
    assert public("amqp://u:p@") == "amqp://"
    assert public("secret") == "(no URI)"


def test_built_and_parsed_again() -> None:
    uri = build(host="h", port=5, vhost="/a", username="u@", password=":p")
    found = parse(uri, "x")
    assert (found.host, found.port, found.vhost) == ("h", 5, "/a")
    assert (found.username, found.password) == ("u@", ":p")


@pytest.mark.parametrize("uri", ["", "e", "no"])
def test_what_is_hidden_does_not_hide_the_reason(uri: str) -> None:
    with pytest.raises(BadUri) as refused:
        parse(uri, "/")
    assert str(refused.value) == "{unable_to_parse_uri,no_scheme} in (no URI)"
