"""burrowmq.config.schema: one declaration for each key, defaults that its own reader accepts."""

from __future__ import annotations

import dataclasses

import pytest

from burrowmq.config.compose import COMPOSED
from burrowmq.config.schema import PARTS, NodeConfig, plain_options

OPTIONS = [*COMPOSED, *(option for _, _, option in plain_options())]


def test_names_are_unique() -> None:
    names = [option.name for option in OPTIONS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_a_default_reads_and_a_meaning_is_given(option) -> None:
    if option.default is not None:
        option.read(option.default)
    assert option.doc.endswith(".")


def test_every_part_is_frozen() -> None:
    config = NodeConfig(node_name="a@b", data_dir="d")
    for part in (config, *(getattr(config, name) for name in PARTS)):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(part, dataclasses.fields(part)[0].name, None)
