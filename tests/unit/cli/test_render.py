"""Formats."""

from __future__ import annotations

from burrowmq.cli import render


def shown(formatter: str, *, headers: bool = True) -> list[str]:
    return list(
        render.lines(formatter, ["name", "n"], [["a\tb", 1], ['q"', None]], headers=headers)
    )


def test_table_and_csv() -> None:
    assert shown("table") == ["name\tn", "a\\011b\t1", 'q"\t']
    assert shown("csv", headers=False) == ['"a\\011b","1"', '"q""",""']


def test_the_lazy_queue_guides_transcript() -> None:
    columns = ["name", "arguments", "memory", "messages_ram", "messages_persistent"]
    arguments = {"table": [["x-queue-mode", "longstr", "lazy"]]}
    row = ["lazy", arguments, 20_480, 0, 1_000_000]
    assert list(render.lines("table", columns, [row], headers=True)) == [
        "name\targuments\tmemory\tmessages_ram\tmessages_persistent",
        'lazy\t[{"x-queue-mode","lazy"}]\t20480\t0\t1000000',
    ]


def test_erlang_and_json() -> None:
    assert shown("erlang") == ['[[{name,<<"a\\tb">>},{n,1}],', ' [{name,<<"q\\"">>},{n,\'\'}]]']
    assert shown("json") == ["[", '{"name":"a\\tb","n":1}', ',{"name":"q\\"","n":""}', "]"]
    assert len(shown("json_stream")) == 2


def test_empty_lists() -> None:
    for formatter, expected in (
        ("table", []),
        ("json", ["[", "]"]),
        ("erlang", ["[]"]),
        ("pretty_table", []),
        ("csv", []),
    ):
        assert list(render.lines(formatter, ["name"], [], headers=True)) == expected


def test_wide_characters_keep_the_box_straight() -> None:
    lines = list(render.lines("pretty_table", ["名"], [["ab"], ["c"]], headers=True))
    assert lines[1:4] == ["│ 名 │", "├────┤", "│ ab │"]
