"""Covers: `scripts.house`, the tables about the product's tree."""

from __future__ import annotations

from scripts import house
from scripts.house import Module


def test_the_index_is_read_whole() -> None:
    modules = {module.path: module for module in house.read("")}
    assert "broker/turn/loop_scheduler.py" in modules
    assert modules["broker/turn/loop_scheduler.py"].text.startswith('"""')
    assert not [path for path in modules if path.startswith(("tests/", "bench/", "scripts/"))]


def test_rooms_count_what_lies_directly_in_them() -> None:
    crowd = [Module(f"storage/m{index}.py", "") for index in range(house.FULL)]
    names = ("a.py", "__init__.py", "part.pxi")
    room = [Module(f"storage/disk/{name}", "") for name in names]
    assert house.rooms([*crowd, *room])[2:] == [
        f"| storage | {house.FULL} (full) |",
        "| storage/disk | 1 |",
    ]


def test_the_longest_come_first() -> None:
    modules = [Module(f"cli/m{count}.py", "x = 1\n" * count) for count in range(20)]
    rows = house.longest(modules)
    assert rows[2] == "| cli/m19.py | 19 |"
    assert len(rows) == 2 + house.LONGEST


def test_what_is_passed_over_is_counted_where_it_counts() -> None:
    text = (
        "from typing import Any\n"
        '"""Any in a text does not count."""\n'
        "def show(node: Any, rows: dict[str, Any]) -> None: ...  # noqa: E704\n"
        "value: int = None  # type: ignore[assignment]\n"
    )
    assert house.passed_over([Module("cli/m.py", text)])[2:] == [
        "| `type: ignore` | 1 |",
        "| `Any` in annotations | 2 |",
        "| `Any` for domain objects | 1 |",
        "| `noqa` | 1 |",
    ]
