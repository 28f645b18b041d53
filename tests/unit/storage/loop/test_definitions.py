"""Rows are staged as they come; no row has no value."""

from __future__ import annotations

import pytest

from burrowmq.storage.loop.definitions import DefinitionChange, Definitions


def test_changes_are_staged_in_order() -> None:
    staged: list[DefinitionChange] = []
    definitions = Definitions(staged.append)
    definitions.put("queue", "q", {"durable": True})
    definitions.delete("queue", "q")
    assert staged == [("queue", "q", {"durable": True}), ("queue", "q", None)]
    with pytest.raises(ValueError, match="cannot be None"):
        definitions.put("queue", "q", None)
    assert len(staged) == 2
