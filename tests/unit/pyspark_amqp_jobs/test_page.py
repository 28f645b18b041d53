"""Pages: whole, escaped, and drawn to scale."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from pyspark_amqp_jobs.page import Bars, chart, figures, nice, page, table


class Balance(HTMLParser):
    """Sees that what is opened is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("meta", "line", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("line", "rect"):
            assert self.open.pop() == tag


def test_a_page_is_whole_and_needs_nothing_else() -> None:
    bars = Bars(["a<b", "c"], {"x": [1, 2], "y": [3, 0]}, unit="B")
    text = page(
        "T & t",
        "n<o>te",
        [figures({"k": 1}), chart("C", bars), table("H", ("q", "n"), [("<q>", 5)], [True])],
    )
    parser = Balance()
    parser.feed(text.partition("\n")[2])
    assert parser.open == []
    assert "<q>" not in text
    assert "&lt;q&gt;" in text
    assert "T &amp; t" in text
    assert not re.search(r"(src|href)=|<script|https?://", text)
    assert '<tr class="bad"><td>&lt;q&gt;</td><td class="n">5</td>' in text


def test_bars_are_stacked_to_scale() -> None:
    svg = chart("C", Bars(["one", "two"], {"x": [4, 0], "y": [4, 8]}))
    heights = [float(found) for found in re.findall(r'<rect[^>]* height="([0-9.]+)"', svg)]
    assert heights == [115.0, 115.0, 230.0]
    assert "<title>one: x 4</title>" in svg


def test_many_labels_are_thinned_out() -> None:
    svg = chart("C", Bars([f"l{at}" for at in range(400)], {"x": [1] * 400}))
    assert svg.count("<rect") == 400
    assert svg.count("rotate(") == 16


def test_an_axis_names_groups_where_there_is_room() -> None:
    groups = ["big"] * 60 + ["a", "b"]
    svg = chart("C", Bars([f"l{at}" for at in range(62)], {"x": [1] * 62}, "B", groups=groups))
    assert svg.count(">big</text>") == 1
    assert [svg.count(f">{name}</text>") for name in "ab"] == [1, 0]


def test_a_long_name_at_an_edge_is_not_cut_off() -> None:
    groups = ["a" * 30] + ["b"] * 40
    svg = chart("C", Bars([f"l{at}" for at in range(41)], {"x": [1] * 41}, groups=groups))
    assert f'<text x="105.0" y="260" text-anchor="middle">{"a" * 30}</text>' in svg


def test_few_bars_say_how_high_they_are() -> None:
    svg = chart("C", Bars(["one", "two"], {"x": [4, 1000], "y": [4, 8]}))
    assert 'class="sum"' in svg
    assert ">1,008</text>" in svg


def test_axes_end_at_round_numbers() -> None:
    assert [nice(value) for value in (0, 4, 5, 33, 100, 9_000_001)] == [
        4,
        4,
        8,
        40,
        120,
        12_000_000,
    ]
    assert chart("C", Bars([], {}))
