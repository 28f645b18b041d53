"""burrowmq.config.example: the example file loads, and the page names every key."""

from __future__ import annotations

from pathlib import Path

from burrowmq.config import example
from burrowmq.config.load import load


def test_the_example_uncommented_changes_nothing_but_the_listeners(tmp_path: Path) -> None:
    lines = [
        line.removeprefix("# ") for line in example.example_file().splitlines() if " = " in line
    ]
    given = [line for line in lines if not line.startswith(("Every", "Keys", "`", "+"))]
    file = tmp_path / "rabbitmq.conf"
    file.write_text("\n".join(line for line in given if ".tcp." not in line) + "\n")
    assert load(str(file), {}, (), None).config == load(None, {}, (), None).config


def test_the_page_names_every_key() -> None:
    page = example.page()
    assert all(f"`{option.name}`" in page for option in example.options())
