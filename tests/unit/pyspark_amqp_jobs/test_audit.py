"""The audit's text and page; the audit itself is tested with Spark."""

from __future__ import annotations

from pyspark_amqp_jobs.audit import (
    Audit,
    FileRow,
    QueueRow,
    file_order,
    html,
    owner_text,
    short_path,
    text,
)

FOUND = Audit(
    [
        FileRow("(shared store)", "v/msg/2.g0.seg", 1000, 10, 5, 400, 500, 0),
        FileRow("(shared store)", "v/msg/10.g0.seg", 1000, 10, 9, 800, 100, 36),
    ],
    [QueueRow("/", "q", 14, 9000, 14, 1200)],
    1,
)


def test_text() -> None:
    said = text(FOUND)
    assert (
        "2 files, 2.0 kB: live 1.2 kB, garbage 600 B, damaged 36 B; 1 messages unreadable" in said
    )
    assert "2.g0.seg" in said
    short = text(FOUND, is_short=True)
    assert "2.g0.seg" not in short
    assert "10.g0.seg" in short


def test_files_are_sorted_by_number() -> None:
    first, second = FOUND.files
    assert sorted([second, first], key=file_order) == [first, second]


def test_a_file_says_whose_it_is() -> None:
    assert owner_text("/", "orders") == "orders"
    assert owner_text("v", "orders") == "orders (v)"
    assert owner_text("v", None) == "(shared store) (v)"


def test_the_page_shows_short_paths() -> None:
    assert short_path("vhosts/8a5e/queues/75006f930b426ee270d600eb/3.qs") == "75006f93…/3.qs"
    assert short_path("v/msg/3.g0.seg") == "msg/3.g0.seg"


def test_soundness() -> None:
    assert not FOUND.is_sound
    assert not FOUND._replace(unreadable=0).is_sound
    assert Audit(FOUND.files[:1], [], 0).is_sound


def test_page() -> None:
    made = html(FOUND, "/data")
    assert "<b>60.0 %</b><span>live</span>" in made
    assert made.count('<tr class="bad">') == 1
    assert "(shared store) 2.g0.seg: headers and seals 100 B" in made
    assert "Store files" not in html(Audit([], [], 0), "/data")
