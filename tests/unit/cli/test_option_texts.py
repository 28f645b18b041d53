"""burrowmq.cli.option_texts: a text for each option of each command, and for nothing else."""

from __future__ import annotations

from burrowmq.cli.option_texts import OF_ALL, OF_ONE, text_of
from burrowmq.cli.options import OWN
from burrowmq.cli.registry import COMMANDS


def test_each_text_is_of_an_option_that_a_command_takes() -> None:
    taken = {option for command in COMMANDS.values() for option in command.options}
    assert set(OF_ALL) <= taken
    assert set(OF_ALL) <= OWN.keys()
    for name, option in OF_ONE:
        assert option in COMMANDS[name].options


def test_one_command_may_mean_something_else_by_it() -> None:
    assert text_of("status", "unit").startswith("bytes, mb")
    assert text_of("check_certificate_expiration", "unit").startswith("days, weeks")
