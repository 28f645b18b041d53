"""Long families: the text of prometheus_client, a few lines a turn."""

from __future__ import annotations

import asyncio

from prometheus_client.core import GaugeMetricFamily

from burrowmq.management.prometheus import exposition
from burrowmq.management.prometheus.series import LINES_PER_TURN, Series, labels_text

HOSTILE = 'a"b\\c\nd'


async def _pieces(series: Series[int]) -> list[bytes]:
    return [piece async for piece in series.lines()]


def test_the_text_is_that_of_prometheus_client() -> None:
    values = [0, 1, 12_345_678_901, 0.25]
    family = GaugeMetricFamily("some_name", "Some text", labels=["vhost", "queue"])
    for number, value in enumerate(values):
        family.add_metric(["/", f"{HOSTILE}{number}"], value)
    whole = exposition.text([family])
    head = b"".join(whole.splitlines(keepends=True)[:2])
    labels = [labels_text(("vhost", "queue"), ("/", f"{HOSTILE}{n}")) for n in range(4)]
    series = Series(head, "some_name", range(4), labels, values.__getitem__)
    assert b"".join(asyncio.run(_pieces(series))) == whole


def test_a_turn_writes_so_many_lines_and_what_has_no_value_none() -> None:
    count = 2 * LINES_PER_TURN + 1
    series = Series(b"", "n", range(count), ["a"] * count, lambda n: n if n % 2 else None)
    found = asyncio.run(_pieces(series))
    assert [piece.count(b"\n") for piece in found] == [
        0,
        LINES_PER_TURN // 2,
        LINES_PER_TURN // 2,
        0,
    ]
