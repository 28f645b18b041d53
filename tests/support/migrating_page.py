"""The commands that docs/migrating.md tells its reader to run."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "migrating.md"


def commands(program: str) -> list[str]:
    """The lines of the page's code blocks that begin with this program."""
    blocks = re.findall(r"```\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.splitlines() if line.strip()]
    assert all(line.split()[0] in ("burrowctl", "rabbitmqctl") for line in lines), lines
    return [line for line in lines if line.startswith(program)]
