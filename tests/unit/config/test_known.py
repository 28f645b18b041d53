"""config.known: RabbitMQ's other keys."""

from __future__ import annotations

import pytest

from config.known import has_effect, is_known


@pytest.mark.parametrize(
    "key",
    [
        "ssl_options.versions.1",
        "listeners.ssl.1",
        "auth_backends.2.authn",
        "log.file.rotation.size",
        "mqtt.exchange",
    ],
)
def test_known(key: str) -> None:
    assert is_known(key)


@pytest.mark.parametrize(
    "key", ["ssl_options", "listeners.ssl.1.2", "nosuch.key", "mqtt", "xmqtt.exchange"]
)
def test_unknown(key: str) -> None:
    assert not is_known(key)


def test_some_values_have_no_effect_yet() -> None:
    assert has_effect("heartbeat", "1")
    assert has_effect("classic_queue.default_version", "2")
    assert not has_effect("classic_queue.default_version", "1")
    assert has_effect("consumer_timeout", "1")
    assert not has_effect("disk_monitor_interval", "1")
