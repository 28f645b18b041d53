"""Every row of the command table works."""

from __future__ import annotations

from importlib import import_module

from cli.options import VALUED
from cli.registry import COMMANDS


def test_rows_point_at_functions() -> None:
    for name, command in COMMANDS.items():
        assert callable(getattr(import_module(command.module), command.function)), name
        assert command.least <= command.most
        assert all(option in VALUED for option in command.options), name
