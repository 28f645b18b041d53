"""burrowmq.config.known: RabbitMQ's other keys."""

from __future__ import annotations

import pytest

from burrowmq.config.known import has_effect, is_known


@pytest.mark.parametrize(
    "key",
    [
        "ssl_options.reuse_sessions",
        "auth_backends.2.authn",
        "log.file.rotation.date",
        "mqtt.exchange",
    ],
)
def test_known(key: str) -> None:
    assert is_known(key)


@pytest.mark.parametrize(
    "key", ["ssl_options", "num_acceptors.tcp.1", "nosuch.key", "mqtt", "xmqtt.exchange"]
)
def test_unknown(key: str) -> None:
    assert not is_known(key)


def test_some_values_have_no_effect_yet() -> None:
    assert has_effect("heartbeat", "1")
    assert has_effect("consumer_timeout", "1")
    assert has_effect("disk_monitor_interval", "1")
    assert not has_effect("ssl_options.versions.$n", "tlsv1.1")
    assert has_effect("ssl_options.versions.$n", "tlsv1.3")
    assert not has_effect("tcp_listen_options.linger.timeout", "10")
    assert has_effect("tcp_listen_options.linger.timeout", "0")
