"""Progress; the session itself is tested with Spark."""

from __future__ import annotations

import io
import threading

from pyspark_amqp_jobs.session import Progress, stage_text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_come_when_there_is_something_new() -> None:
    told, stream = ["", "1", "1", "2"], io.StringIO()
    progress = Progress("doing", lambda: told.pop(0), stream)
    for _ in range(4):
        progress.show()
    assert stream.getvalue() == "doing: 1\ndoing: 2\n"


def test_a_terminal_has_one_line_that_goes() -> None:
    stream = Terminal()
    seen = threading.Event()

    def tell() -> str:
        seen.set()
        return "half"

    with Progress("doing", tell, stream, every_s=0.001):
        seen.wait(5)
    assert stream.getvalue().startswith("\rdoing: half")
    assert stream.getvalue().endswith("\r" + " " * 11 + "\r")


class Stage:
    numTasks, numCompletedTasks = 4, 1  # noqa: N815 - Spark's name


class Tracker:
    def getActiveStageIds(self) -> list[int]:
        return [1, 2]

    def getStageInfo(self, stage: int) -> Stage | None:
        return Stage() if stage == 1 else None


class Context:
    def statusTracker(self) -> Tracker:
        return Tracker()


class Session:
    sparkContext = Context()  # noqa: N815 - Spark's name


def test_tasks_of_running_stages() -> None:
    assert stage_text(Session()) == "1 of 4 tasks"
    assert stage_text(object()) == ""
