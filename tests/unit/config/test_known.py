"""burrowmq.config.known and config.idle: every key of RabbitMQ 3.13.7 is honoured, or named in a warning with a reason.

Covers: config/idle.py
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from burrowmq.config.idle import AGREES, IDLE
from burrowmq.config.known import agrees, why_idle, why_not_here
from burrowmq.config.reading import Reading
from burrowmq.config.setting import Setting

KEYS = Path(__file__).resolve().parents[2] / "data" / "config" / "rabbitmq-keys.txt"
VALUES = {
    "<address>": ("127.0.0.1", "::1"),
    "<byte>": ("0", "255"),
    "<duration>": ("1h", "60000"),
    "<endpoint>": ("127.0.0.1:5673",),
    "<file>": (str(KEYS),),
    "<flag>": ("true", "false"),
    "<float>": ("0.5",),
    "<import-backend>": ("local_filesystem", "https", "rabbit_definitions_import_local_filesystem"),
    "<int>": ("5000",),
    "<list>": ("one, two",),
    "<mechanism>": ("PLAIN", "AMQPLAIN", "EXTERNAL", "ANONYMOUS", "RABBIT-CR-DEMO"),
    "<origin>": ("https://example.org",),
    "<path>": ("/metrics",),
    "<queue-type>": ("classic", "quorum", "stream"),
    "<size>": ("64MiB", "64kb"),
    "<text>": ("words",),
    "<version>": ("tlsv1.3", "tlsv1.2", "tlsv1.1", "tlsv1"),
}


def table() -> list[tuple[str, list[str]]]:
    """Return each key, a name put in for what the operator chooses, with values of all its kinds."""
    lines = [line.split() for line in KEYS.read_text().splitlines() if not line.startswith("#")]
    return [
        (
            re.sub(r"\$\w+", "1", key),
            [value for kind in kinds.split("|") for value in VALUES.get(kind, (kind,))],
        )
        for key, kinds in lines
    ]


def test_every_key_of_rabbitmq_is_honoured_or_named_and_no_value_of_its_kinds_refused() -> None:
    reading = Reading()
    keys = table()
    assert len(keys) == 960
    for key, values in keys:
        for line, value in enumerate(values, start=1):
            told = len(reading.warnings)
            reading.take(Setting(key, value, "rabbitmq.conf", line))
            is_told = len(reading.warnings) > told
            is_honoured = key in reading.values or agrees(key, value)
            assert is_told or is_honoured, f"{key} = {value} is passed over"
            if is_told:
                text = f"rabbitmq.conf:{line}: {key}"
                assert reading.warnings[-1].startswith(text)
                assert "has no effect here: " in reading.warnings[-1]
    assert reading.problems == []


def test_below_what_is_honoured_a_mistyped_key_is_an_error_with_a_suggestion() -> None:
    reading = Reading()
    for key in ("ssl_options.verfy", "management.tcp.prot", "prometheus.tcp.ipp", "vhost_maxx"):
        reading.take(Setting(key, "1", "rabbitmq.conf", 1))
    nearest = [problem.nearest[0] for problem in reading.problems]
    assert nearest == [
        "ssl_options.verify",
        "management.tcp.port",
        "prometheus.tcp.ip",
        "vhost_max",
    ]


@pytest.mark.parametrize("key", ["num_acceptors.tcp.1", "nosuch.key", "mqtt", "xmqtt.exchange"])
def test_unknown(key: str) -> None:
    assert why_idle(key) is None


def test_some_values_have_no_effect() -> None:
    assert why_not_here("heartbeat", "1") is None
    assert why_not_here("ssl_options.versions.$n", "tlsv1.1") is not None
    assert why_not_here("management.listener.ssl_opts.versions.$n", "tlsv1.1") is not None
    assert why_not_here("ssl_options.versions.$n", "tlsv1.3") is None
    assert why_not_here("tcp_listen_options.linger.timeout", "10") is not None
    assert why_not_here("tcp_listen_options.linger.timeout", "0") is None


def test_what_agrees_with_us_is_a_key_that_is_idle_otherwise() -> None:
    assert agrees("reverse_dns_lookups", "false")
    assert not agrees("reverse_dns_lookups", "true")
    assert not agrees("heartbeat", "60")
    assert all(why_idle(key.replace("$", "1")) for key in AGREES)
    assert all(reason and not reason.endswith(".") for reason, _ in IDLE)
