"""Rows as text."""

from __future__ import annotations

from pyspark_amqp_jobs.table import shown, size_text, text_table


def test_numbers_stand_to_the_right() -> None:
    assert text_table(("queue", "messages"), [("a", 12345), ("long name", 1)]) == (
        "queue      messages\n---------  --------\na            12,345\nlong name         1"
    )
    assert text_table(("a", "b"), []) == "a  b\n-  -"


def test_values() -> None:
    assert [shown(value) for value in (None, True, 1234, 2.25, "x")] == [
        "",
        "yes",
        "1,234",
        "2.2",
        "x",
    ]
    sizes = [size_text(count) for count in (999, 1500, 999_960, 3 * 10**12, 5 * 10**15)]
    assert sizes == ["999 B", "1.5 kB", "1.0 MB", "3.0 TB", "5000.0 TB"]
