"""Usage, suggestions, versions."""

from __future__ import annotations

import re
import socket

import pytest

from burrowmq.cli.commands.help import NOT_HERE, command_help
from burrowmq.cli.registry import COMMANDS
from tests.support.served import ctl


def test_a_slip_is_answered_with_three_suggestions() -> None:
    output = ctl("list_quues")
    assert (output.code, output.err) == (
        64,
        "\nCommand 'list_quues' not found. \nDid you mean 'list_queues'? \n"
        "Near it are also: list_users, migrate_queues\n\n'burrowctl help' lists all commands.\n",
    )
    output = ctl("xyzzy")
    assert output.code == 64
    assert "The nearest are: exec, sync_queue, set_policy\n" in output.err
    assert len(output.err.splitlines()) < 8


def test_a_command_of_another_program_is_said_to_be_one() -> None:
    output = ctl("--script-name", "/usr/sbin/rabbitmqctl", "check_running")
    assert (output.code, output.err) == (
        64,
        "\nCommand 'check_running' not found. \nIt is a command of rabbitmq-diagnostics.\n"
        "\n'rabbitmqctl help' lists all commands.\n",
    )


def test_hyphens_may_stand_for_underscores() -> None:
    assert ctl("install-names", "--help").code == 0


APPLY = [name for name, command in COMMANDS.items() if not command.summary.startswith(NOT_HERE)]


@pytest.mark.parametrize("name", APPLY)
def test_help_explains_each_option_of_a_command(name: str) -> None:
    text = command_help("burrowctl", name)
    for option in COMMANDS[name].options:
        (row,) = re.findall(
            rf"(?m)^ +(?:-., )?--{option}\b[^-\n]*?  ?(\S.*)$", text.split("Options", 1)[1]
        )
        assert row, option


def test_help_has_the_values_that_options_take() -> None:
    text = ctl("help", "set_policy").out
    assert (
        "   --apply-to <apply-to>    queues, classic_queues, quorum_queues, streams, exchanges or all"
        in text
    )
    assert (
        "   --priority <priority>    of several policies that match, the one with the highest holds"
        in text
    )


def test_usage() -> None:
    assert ctl().code == 64
    assert ctl("--help").code == 0
    assert "list_queues" in ctl("help").out
    assert (
        "burrowctl [--node <node>] [--longnames] [--quiet] add_user <username>"
        in ctl("help", "add_user").out
    )
    assert ctl("add_user", "--help").code == 0
    assert ctl("help", "nosuch").code == 64


def test_what_does_not_apply_is_no_available_command() -> None:
    available, _, others = ctl("help").out.partition("do not apply here")
    assert "list_queues" in available
    assert "join_cluster" not in available
    assert "join_cluster" in others
    assert "General Options" in others


def test_the_help_of_a_list_names_its_columns() -> None:
    for output in (ctl("help", "list_queues"), ctl("list_queues", "-?")):
        assert output.code == 0
        assert "consumer_utilisation, consumers" in output.out
        assert "without any: name, messages\n" in output.out
        assert "-t, --timeout <seconds>" in output.out
    assert "<column>" not in ctl("help", "add_user").out


def test_arguments_are_counted() -> None:
    output = ctl("set_permissions", "bob")
    assert output.code == 64
    assert output.err.startswith(
        "Error (argument validation): not enough arguments.\nArguments given:\n\tset_permissions bob\n\n"
    )
    assert "too many arguments." in ctl("ping", "x").err


def test_versions() -> None:
    assert ctl("version").out == ctl("--version").out == "3.13.7\n"
    assert ctl("autocomplete", "list_q").out == "list_queues\n"


def test_bad_options() -> None:
    assert ctl("list_queues", "--priority", "3").code == 64
    assert ctl("list_queues", "--formatter", "bogus").code == 64
    assert ctl("list_queues", "-t", "abc").code == 64
    host = socket.gethostname().partition(".")[0]
    output = ctl("list_queues", "-t", "0")
    assert f" on node rabbit@{host} timed out." in output.err
    output = ctl("list_queues", "-n", "rabbit@h", "-t", "0")
    assert output.code == 75
    assert (
        output.err
        == "Error: operation list_queues on node rabbit@h timed out. Timeout value used: 0\n"
    )
