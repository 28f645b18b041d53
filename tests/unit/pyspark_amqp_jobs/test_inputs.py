"""Where messages come from."""

from __future__ import annotations

import argparse
from types import SimpleNamespace
from typing import Any

from pyspark_amqp_jobs.inputs import limit_note, messages


class Reader:
    """Remembers what it is told, as Spark's reader and frame."""

    def __init__(self) -> None:
        self.told: list[Any] = []
        self.read = self

    def __getattr__(self, name: str) -> Any:
        def note(*args: Any, **options: Any) -> Reader:
            self.told.append((name, *args, *sorted(options.items())))
            return self

        return note


def asked(**given: Any) -> list[Any]:
    spark = Reader()
    arguments = SimpleNamespace(
        **{
            **dict.fromkeys(
                ("archive", "queue", "store", "queues", "password_file", "password_env")
            ),
            "uri": "amqp://h",
            "option": [],
            "limit": 7,
            **given,
        }
    )
    messages(spark, arguments, ["x_death"])
    return spark.told


def test_an_archive() -> None:
    assert asked(archive="/a") == [("parquet", "/a"), ("select", "x_death")]


def test_a_look_at_queues() -> None:
    assert asked(queue="a,b") == [
        ("format", "amqp"),
        ("options", ("amqp.uri", "amqp://h"), ("limit", "7"), ("queue", "a,b")),
        ("option", "includeHeadersRaw", "true"),
        ("load",),
        ("select", "x_death"),
    ]


def test_a_report_says_that_there_may_be_more() -> None:
    looked = argparse.Namespace(queue="a,b", limit=1000)
    assert limit_note(looked, 999) == ""
    expected = "at most 1,000 messages of each queue were looked at (--limit)\n"
    assert limit_note(looked, 1000) == expected
    assert limit_note(argparse.Namespace(queue=None, limit=1000), 5000) == ""
