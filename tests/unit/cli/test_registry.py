"""Every row of the command table works."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from burrowmq.cli.options import VALUED
from burrowmq.cli.registry import COMMANDS


def test_rows_point_at_functions() -> None:
    for name, command in COMMANDS.items():
        assert callable(getattr(import_module(command.module_name), command.function)), name
        assert command.least <= command.most
        assert all(option in VALUED for option in command.options), name


def test_the_page_of_commands_names_every_command_once() -> None:
    root = Path(__file__).resolve().parents[3]
    page = (root / "docs" / "cli-commands.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z]+(?:_[a-z0-9]+)*)`", page.split("## Same")[1])
    ours = {"backup", "list_hashes"}  # not RabbitMQ's, or named beside others
    missing = [name for name in COMMANDS if name not in named and name not in ours]
    assert not missing, f"docs/cli-commands.md lacks {missing}"
