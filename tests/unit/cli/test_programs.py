"""Which program has which commands: RabbitMQ's sets, and nothing that does not exist."""

from __future__ import annotations

import pytest

from burrowmq.cli.programs import BARE_VERBS, OWN, PROGRAMS, commands_of, programs_with
from burrowmq.cli.registry import COMMANDS
from tests.support.served import ctl


def test_every_command_of_a_program_exists_and_every_command_has_a_program() -> None:
    for program, commands in PROGRAMS.items():
        assert commands <= set(COMMANDS), program
    lost = [name for name in COMMANDS if name not in OWN and not programs_with(name)]
    assert not lost


@pytest.mark.parametrize(
    ("program", "count"),
    [
        # So many lists 3.10.8's help, and so many came with 3.13 (and are ours); then those of shovels.
        ("rabbitmqctl", 100 + 8 + 7 + 3),
        ("rabbitmq-diagnostics", 76 + 7 + 1),
        ("rabbitmq-plugins", 9),
        ("rabbitmq-queues", 13 + 1),
        ("rabbitmq-streams", 6),
        ("rabbitmq-upgrade", 6),
    ],
)
def test_the_programs_have_rabbitmqs_commands(program: str, count: int) -> None:
    assert len(commands_of(program)) == count
    listed = ctl("--script-name", program, "help").out
    assert all(name in listed for name in commands_of(program))


def test_burrowctl_has_all_but_the_verbs_that_need_a_noun() -> None:
    assert commands_of("burrowctl") == set(COMMANDS) - BARE_VERBS
    assert commands_of("a-link-of-my-own") == commands_of("burrowctl")
