"""broker.report.log_tail: the last lines, bounded."""

from __future__ import annotations

from burrowmq.broker.report import log_tail
from burrowmq.broker.report.log_sinks import Sink, Sinks
from burrowmq.broker.report.log_tail import LINE_MAX, LogTail


def test_lines_come_with_their_level_and_can_be_chosen() -> None:
    tail = LogTail()
    log = Sinks([Sink(stream=tail, level="info")])
    log.debug("never")
    log.info("opened", user="[error] no level")
    log.error("failed", reason="Disk of\nsda")
    lines = tail.last(10)
    assert [(line.number, line.level) for line in lines] == [(1, "info"), (2, "error")]
    assert lines[1].text.endswith("failed reason='Disk of\\\\nsda'")
    assert [line.level for line in tail.last(10, "warning")] == ["error"]
    assert [line.number for line in tail.last(10, text="dISK")] == [2]
    assert [line.number for line in tail.last(1)] == [2]
    log.set_level("debug")
    log.debug("now")
    assert tail.last(1)[0].level == "debug"


def test_it_never_grows_beyond_its_limits() -> None:
    tail = LogTail(lines_max=3)
    for number in range(5):
        tail.write(f"2026-01-01 00:00:00 [info] {number}")
        tail.write("\n")
    tail.write("x" * 5000)
    assert [line.number for line in tail.last(100)] == [4, 5, 6]
    (last,) = tail.last(1)
    assert len(last.text) == LINE_MAX
    assert last.text.endswith(log_tail.CUT)
