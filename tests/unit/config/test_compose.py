"""burrowmq.config.compose: values of several keys that make one field."""

from __future__ import annotations

import os

from burrowmq.config.compose import node_config
from burrowmq.config.units import Endpoint


def test_listeners_are_named_once() -> None:
    values = {"listeners.tcp.a": Endpoint("", 1), "listeners.tcp.b": Endpoint("::", 1)}
    assert node_config(values, {}).listeners == (Endpoint("0.0.0.0", 1), Endpoint("::", 1))


def test_none_wins_over_named_listeners() -> None:
    assert (
        node_config({"listeners.tcp.a": Endpoint("", 1), "listeners.tcp": "none"}, {}).listeners
        == ()
    )


def test_guest_is_bound_to_this_machine_until_it_is_named() -> None:
    assert node_config({}, {}).loopback_users == {"guest"}
    assert node_config({"loopback_users.bob": True}, {}).loopback_users == {"guest", "bob"}
    assert node_config({"loopback_users.guest": False}, {}).loopback_users == frozenset()
    assert node_config({"loopback_users": "none"}, {}).loopback_users == frozenset()


def test_tags_replace_the_default_ones() -> None:
    assert node_config({}, {}).first_user.tags == ("administrator",)
    values = {"default_user_tags.management": True, "default_user_tags.administrator": False}
    assert node_config(values, {}).first_user.tags == ("management",)


def test_log_file() -> None:
    assert node_config({}, {}).log.file_path is None
    assert node_config({"log.file": "x.log"}, {}).log.file_path == "data/log/x.log"
    assert node_config({"log.file": "false", "log.dir": "/l"}, {}).log.file_path is None
    assert node_config({"log.dir": "/l", "nodename": "a@b"}, {}).log.file_path == "/l/a@b.log"


def test_a_container_binds_every_interface_unless_a_key_says_otherwise() -> None:
    config = node_config({"management.tcp.ip": "::1"}, {"BURROWMQ_BIND": "*"})
    assert config.listeners == (Endpoint("0.0.0.0", 5672), Endpoint("::", 5672))
    assert config.management.listeners == (Endpoint("::1", 15672),)


def test_none_may_call_from_elsewhere_unless_it_is_named() -> None:
    assert node_config({}, {}).management.allowed_origins == ()
    assert (
        node_config({"management.cors.allow_origins": "none"}, {}).management.allowed_origins == ()
    )
    named = {
        f"management.cors.allow_origins.{number}": name for number, name in ((10, "b"), (9, "a"))
    }
    assert node_config(named, {}).management.allowed_origins == ("a", "b")


def test_old_names_of_the_management_listener_are_taken_where_no_new_ones_are() -> None:
    old = {"management.listener.port": 15673, "management.listener.ip": "127.0.0.1"}
    config = node_config(old, {}).management
    assert config.listeners == (Endpoint("127.0.0.1", 15673),)
    assert node_config(old | {"management.tcp.port": 15674}, {}).management.listeners == (
        Endpoint("127.0.0.1", 15674),
    )
    secure = {"management.listener.ssl": True, "management.listener.ssl_opts.certfile": "c.pem"}
    config = node_config(old | secure, {}).management
    assert config.listeners == ()
    assert config.tls_listeners == (Endpoint("127.0.0.1", 15673),)
    assert config.tls.certfile == "c.pem"
    # As in RabbitMQ: without a port it is that of the plain one, and there is no plain one.
    config = node_config(secure, {}).management
    assert config.listeners == ()
    assert config.tls_listeners == (Endpoint("0.0.0.0", 15672), Endpoint("::", 15672))
    both = node_config(secure | {"management.tcp.port": 15673}, {}).management
    assert [each.port for each in (*both.listeners, *both.tls_listeners)] == [15673] * 2 + [
        15672
    ] * 2
    newer = node_config(secure | {"management.ssl.port": 15671}, {}).management
    assert {each.port for each in newer.tls_listeners} == {15671}


def test_the_plain_listener_of_the_metrics_may_be_off_or_named_whole() -> None:
    assert node_config({"prometheus.tcp.listener": None}, {}).prometheus.listeners == ()
    whole = Endpoint("10.0.0.1", 9419)
    assert node_config({"prometheus.tcp.listener": whole}, {}).prometheus.listeners == (whole,)


def test_a_long_name_has_the_whole_host() -> None:
    host = os.uname().nodename
    assert node_config({}, {"RABBITMQ_USE_LONGNAME": "true"}).node_name == f"rabbit@{host}"
