"""burrowmq.config.option: a declared field has the default that its reader makes of the file's syntax, and its key as metadata."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import pytest

from burrowmq.config import units
from burrowmq.config.option import Option, option


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    limit_bytes: int = option("limit", units.binary_size(0), "4KiB", "Most of it.", ours=True)
    count: int | None = option("count", units.optional(units.integer(0)), None, "How many.")


def test_the_default_is_read_as_a_value_from_a_file_is() -> None:
    assert Part() == Part(limit_bytes=4096, count=None)


def test_a_default_that_its_reader_refuses_is_a_programmer_error() -> None:
    with pytest.raises(ValueError, match="x"):
        option("limit", units.integer(0), "x", "Most of it.")


def test_the_key_stands_beside_the_field() -> None:
    declared = [field.metadata["option"] for field in dataclasses.fields(Part)]
    assert [(each.name, each.default, each.doc, each.ours) for each in declared] == [
        ("limit", "4KiB", "Most of it.", True),
        ("count", None, "How many.", False),
    ]
    assert all(isinstance(each, Option) for each in declared)
