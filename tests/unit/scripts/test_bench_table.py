"""README's rows and picture come from the page of figures and from nowhere else."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from scripts import bench_table


def page(**changed: str) -> str:
    measured = dict.fromkeys(bench_table.SHOWN, "2.00 x (to RabbitMQ)") | changed
    rows = [f"| {name} | {value} | ≥ 1 x | - | ok |" for name, value in measured.items()]
    return "\n".join(["Full run of 2026-01-02T03:04:05+00:00", "", *rows])


def test_rows_keep_the_figures_and_say_the_day() -> None:
    name = "headline: node RSS 2 s after it"
    text = bench_table.rows(page(**{name: "57.7 MB"}))
    assert text.startswith("| of 2026-01-02 |")
    assert f"| {bench_table.SHOWN[name]} | 57.7 MB | ≥ 1 |" in text
    assert text.count("2.00 x RabbitMQ") == len(bench_table.SHOWN) - 1


def test_the_best_and_the_worst_row_of_the_matrix_stand_side_by_side() -> None:
    part = bench_table.PART
    text = bench_table.rows(
        page(
            **{
                f"many keys{part}": "0.0075 x (to RabbitMQ)",
                f"prefetch 1{part}": "1.20 x (to RabbitMQ)",
                f"RPC{part}": "0.50 x (to RabbitMQ)",
                f"RPC, interpreted{part}": "1.50 x (to RabbitMQ)",
                f"TLS{part}": "-",
            }
        )
    )
    assert text.splitlines()[-2:] == [
        "| where a message costs least beside RabbitMQ: many keys | 0.0075 of its processor time | ≥ 1 |",
        "| where a message costs most beside RabbitMQ: prefetch 1 | 1.2 of its processor time | ≥ 1 |",
    ]
    assert "where a message costs" not in bench_table.rows(page())


def test_a_figure_that_the_page_lacks_is_no_row_with_nothing_in_it() -> None:
    with pytest.raises(KeyError, match="publish-only 16 B"):
        bench_table.rows("no table")


def test_the_picture_has_a_bar_for_each_ratio_and_the_longest_is_the_largest() -> None:
    name = "publish-only 16 B"
    drawn = ET.fromstring(bench_table.picture(page(**{name: "40.0 x (to RabbitMQ)"})))
    widths = [float(bar.attrib["width"]) for bar in drawn if bar.tag.endswith("rect")]
    assert len(widths) == len(bench_table.SHOWN) + 1
    assert max(widths) == widths[0] == pytest.approx(20 * widths[1], rel=0.01)


def test_what_stands_around_the_marks_stays(tmp_path) -> None:
    file = tmp_path / "page.md"
    file.write_text(f"before {bench_table.BEGIN}\nold\n{bench_table.END} after")
    text = bench_table.between_marks(str(file), "new")
    assert text == f"before {bench_table.BEGIN}\nnew\n{bench_table.END} after"
    with pytest.raises(SystemExit, match="has no"):
        file.write_text("nothing")
        bench_table.between_marks(str(file), "new")
