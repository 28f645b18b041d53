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


def test_octets_are_escaped_and_a_plus_is_a_plus() -> None:
    found = parse(
        "amqps://a+b%2Bc:p%FF+q%20r@host/v+w%C3%A9?password=x+y%2B%20z&cacertfile=/%FF", "/"
    )
    assert (found.username, found.password) == ("a+b+c", "p\udcff+q r")
    assert found.vhost == "v+w\u00e9"
    assert found.tls is not None
    assert (found.tls.password, found.tls.cacertfile) == ("x+y+ z", "/\udcff")


def test_keys_of_the_query_are_as_they_stand() -> None:
    uri = "amqps://host?heartbeat&hea%72tbeat=7&&=x&cacertfile=/a=b&cacertfile=/c&heartbeat=5"
    found = parse(uri, "/")
    assert found.tls is not None
    assert (found.heartbeat_s, found.tls.cacertfile) == (5, "/a=b")


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
        ("amqp://u%:p@h", "{unterminated_entity,['%']}"),
        ("amqp://u:p%4@h", "{unterminated_entity,['%',52]}"),
        ("amqp://u:p@h/%%41", "{invalid_entitiy,['%',37,52]}"),
        ("amqp://u:p@h%zz", "{invalid_entitiy,['%',122,122]}"),
        ("amqp://u%:p@h%4/%zz", "{invalid_entitiy,['%',122,122]}"),
        ("amqp://u%:p@h%4", "{unterminated_entity,['%',52]}"),
        ("amqp://u%:p@h:99999/%zz", "{port_out_of_range,99999}"),
        (
            "amqps://h?a%62=%63&cacertfile=/%zz",
            '{invalid_ssl_parameter,cacertfile,"/%zz",[{"a%62","%63"},{"cacertfile","/%zz"}],'
            "{invalid_entitiy,['%',122,122]}}",
        ),
        (
            "amqp://h?x&heartbeat=a+b%20&&=3",
            '{invalid_amqp_params_parameter,heartbeat,"a+b%20",'
            '["x",{"heartbeat","a+b%20"},[],{[],"3"}],{not_an_integer,"a+b%20"}}',
        ),
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
    uri = build(host="h", port=5, vhost="/a", username="u@+", password=":p %\udcff")
    found = parse(uri, "x")
    assert (found.host, found.port, found.vhost) == ("h", 5, "/a")
    assert (found.username, found.password) == ("u@+", ":p %\udcff")


@pytest.mark.parametrize("uri", ["", "e", "no"])
def test_what_is_hidden_does_not_hide_the_reason(uri: str) -> None:
    with pytest.raises(BadUri) as refused:
        parse(uri, "/")
    assert str(refused.value) == "{unable_to_parse_uri,no_scheme} in (no URI)"
