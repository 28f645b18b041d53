"""rabbitmq-plugins: RabbitMQ's texts for what is built in, a clear refusal of all else, with and without a node."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from burrowmq.cli.commands.plugins import BUILT_IN, KNOWN
from burrowmq.management.answers.status import PLUGINS
from tests.support.served import Output, Served, ctl

HOST = socket.gethostname().partition(".")[0]
CONFIGURED = """\
The following plugins have been configured:
  rabbitmq_auth_mechanism_ssl
  rabbitmq_consistent_hash_exchange
  rabbitmq_management
  rabbitmq_management_agent
  rabbitmq_prometheus
  rabbitmq_random_exchange
  rabbitmq_recent_history_exchange
  rabbitmq_shovel
  rabbitmq_shovel_management
  rabbitmq_web_dispatch
"""


@pytest.fixture
def plugins(served: Served):
    return lambda *words: served.ctl("--script-name", "rabbitmq-plugins", *words)


@pytest.fixture
def offline(tmp_path: Path):
    """Run a command where no node is."""
    where = ("--data-dir", str(tmp_path), "--script-name", "rabbitmq-plugins")
    return lambda *words: ctl(*where, *words)


def test_what_the_node_says_is_enabled_is_built_in() -> None:
    assert list(PLUGINS) == sorted(BUILT_IN), (
        "status and /api/nodes list what `rabbitmq-plugins list` does"
    )
    assert not set(BUILT_IN) & KNOWN


def test_what_is_built_in_is_enabled_with_rabbitmqs_words(plugins, offline) -> None:
    told = "Enabling plugins on node {}:\nrabbitmq_management\n" + CONFIGURED
    assert plugins("enable", "rabbitmq_management") == Output(
        0,
        told.format("rabbit@test")
        + "Applying plugin configuration to rabbit@test...\nPlugin configuration unchanged.\n",
        "",
    )
    without = told.format(f"rabbit@{HOST}") + "Plugin configuration unchanged.\n"
    assert offline("enable", "rabbitmq_management") == Output(0, without, "")
    assert plugins("enable", "--offline", "rabbitmq_management") == Output(0, without, "")
    assert plugins("-q", "enable", "--all").out.startswith(CONFIGURED)
    assert offline("enable", "--all", "rabbitmq_management").code == 64
    assert offline("enable").code == 64


def test_what_is_not_built_in_is_refused(offline) -> None:
    output = offline("-q", "enable", "rabbitmq_management", "rabbitmq_mqtt", "nosuch")
    assert (output.code, output.out) == (70, "")
    assert output.err.startswith("Error:\n{:plugins_not_found, [:rabbitmq_mqtt, :nosuch]}\n")
    assert "rabbitmq_mqtt, nosuch: not part of BurrowMQ. Built in: rabbitmq_auth" in output.err


def test_nothing_that_is_built_in_can_be_disabled(offline) -> None:
    assert offline("-q", "disable", "rabbitmq_stomp").err == ""
    assert offline("-q", "disable", "nosuch").code == 70
    output = offline("-q", "disable", "rabbitmq_management")
    assert output.code == 0
    assert "rabbitmq_management: built in, cannot be disabled" in output.err
    output = offline("-q", "set", "rabbitmq_management")
    assert "rabbitmq_auth_mechanism_ssl, rabbitmq_consistent_hash_exchange, rabb" in output.err
    assert (
        "rabbitmq_recent_history_exchange, rabbitmq_shovel, rabbitmq_shovel_management: built in"
        in output.err
    )


def test_the_list(plugins, offline) -> None:
    assert plugins("list", "rabbitmq_man").out == (
        'Listing plugins with pattern "rabbitmq_man" ...\n'
        " Configured: E = explicitly enabled; e = implicitly enabled\n"
        " | Status: * = running on rabbit@test\n |/\n"
        "[E*] rabbitmq_management       3.13.7\n[e*] rabbitmq_management_agent 3.13.7\n"
    )
    assert plugins("-s", "list", "-E", "rabbitmq_man").out == "[E*] rabbitmq_management 3.13.7\n"
    assert plugins("-q", "list", "-m").out.split() == list(BUILT_IN)
    verbose = plugins("-q", "list", "-v", "-e", "prom").out
    assert verbose.startswith("[E*] rabbitmq_prometheus\n     Version:     \t3.13.7\n")
    document = json.loads(plugins("list", "agent", "--formatter", "json").out)
    assert document["status"] == "running"
    assert document["plugins"][0]["enabled"] == "implicit"
    assert f"[failed to contact rabbit@{HOST} - status not shown]" in offline("list").out
    assert offline("list", "(").code == 64


def test_whether_they_are_enabled(plugins, offline) -> None:
    assert plugins("is_enabled", "rabbitmq_management").out == (
        "Asking node rabbit@test if plugin rabbitmq_management is enabled...\n"
        "Plugin rabbitmq_management is enabled on node rabbit@test\n"
    )
    output = offline("-q", "is_enabled", "rabbitmq_management", "rabbitmq_mqtt", "rabbitmq_stomp")
    assert output.code == 69
    assert output.err.startswith(
        f"Error:\nPlugins rabbitmq_mqtt, rabbitmq_stomp are not enabled on node rabbit@{HOST}."
        " Enabled plugins and dependencies: rabbitmq_auth_mechanism_ssl, rabbitmq_consistent"
    )
    assert offline("-s", "is_enabled", "rabbitmq_management") == Output(0, "", "")


def test_the_directories(plugins) -> None:
    assert plugins("directories").out.startswith(
        "Listing plugin directories used by node rabbit@test\nPlugin archives directory: (none"
    )
