"""Sinks and the log file: levels, rotation by size, a file that was moved, a file that cannot be."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys

import pytest

from burrowmq.broker.report import log_sinks
from burrowmq.broker.report.console import Console
from burrowmq.broker.report.log import LogObserver
from burrowmq.broker.report.log_sinks import CannotLog, LogFile, Sink, Sinks, log_file


def test_each_sink_has_its_level_and_form():
    console, file = io.StringIO(), io.StringIO()
    sinks = Sinks(
        [Sink(stream=console, level="error"), Sink(stream=file, level="info", form="json")]
    )
    observer = LogObserver(sinks)
    observer.node_stopped("n")
    observer.store_failed("x")
    assert len(console.getvalue().splitlines()) == 1
    assert [json.loads(line)["event"] for line in file.getvalue().splitlines()] == [
        "node_stopped",
        "store_failed",
    ]


def test_sinks_of_one_level_and_form_have_the_same_line_which_is_made_once():
    console, tail, errors = io.StringIO(), io.StringIO(), io.StringIO()
    sinks = Sinks(
        [
            Sink(stream=console, level="info"),
            Sink(stream=errors, level="error"),
            Sink(stream=tail, level="info"),
        ]
    )
    asked: list[str] = []

    class Name:
        def __str__(self) -> str:
            asked.append("asked")
            return "n"

    sinks.info("node_stopped", node=Name())
    assert console.getvalue() == tail.getvalue() != ""
    assert (errors.getvalue(), len(asked)) == ("", 1)
    sinks.set_level("error")
    sinks.info("node_stopped", node="m")
    sinks.error("failed", node=Name())
    assert console.getvalue() == tail.getvalue()
    assert (errors.getvalue(), len(asked)) == (console.getvalue().splitlines(keepends=True)[1], 2)


def test_the_level_can_change_while_it_runs():
    stream = io.StringIO()
    observer = LogObserver(Sinks([Sink(stream=stream, level="none")]))
    for level, count in (("none", 0), ("debug", 5), ("error", 2), ("critical", 1), ("info", 4)):
        stream.truncate(0)
        observer.set_level(level)
        observer.connection_accepted("c")
        observer.node_stopped("n")
        observer.alarm_set("memory", "all of it")
        observer.sync_failed("p", "r")
        observer.store_failed("x")
        assert stream.getvalue().count("\n") == count, level


def test_the_usual_sink_is_standard_error(capsys):
    sink = log_sinks.console("info", "json")
    assert (sink.level, sink.form) == ("info", "json")
    Sinks([sink]).info("said")
    assert json.loads(capsys.readouterr().err)["event"] == "said"
    Sinks([log_sinks.console("info", "json", "stdout")]).info("said")
    assert json.loads(capsys.readouterr().out)["event"] == "said"


@pytest.mark.parametrize(
    ("stream", "errors"), [("stdout", "strict"), ("stderr", "backslashreplace")]
)
def test_a_terminal_that_knows_few_characters_shows_others_by_number(monkeypatch, stream, errors):
    """Clients choose names; whose name the locale did not have was dropped at its login."""
    octets = io.BytesIO()
    monkeypatch.setattr(sys, stream, io.TextIOWrapper(octets, encoding="latin-1", errors=errors))
    Sinks([log_sinks.console("info", "plaintext", stream)]).info("login", user="ü€")
    assert octets.getvalue().endswith(b"login user=\xfc\\u20ac\n")


def test_lines_that_nobody_read_are_counted_in_the_sinks_own_form():
    reading, writing = os.pipe()
    with open(writing, "w") as stream:
        console = Console(stream)
        observer = LogObserver(Sinks([Sink(stream=console, level="info", form="json")]))
        for _ in range(12_000):
            observer.node_stopped("n" * 100)
        os.set_blocking(reading, False)
        text = b""
        while b"lines_dropped" not in text:
            text += os.read(reading, 1 << 20)
            console.flush()
    os.close(reading)
    *whole, last = map(json.loads, text.splitlines())
    assert {line["event"] for line in whole} == {"node_stopped"}
    assert (last["event"], last["count"]) == ("lines_dropped", 12_000 - len(whole))


def lines(path):
    return path.read_text().splitlines()


def test_a_file_is_made_with_its_directory_and_appended_to(tmp_path):
    path = tmp_path / "log" / "node.log"
    for _ in range(2):
        file = LogFile(str(path))
        file.write("line\n")
        file.finish()
        file.close()
    assert lines(path) == ["line", "line"]


def test_a_file_beyond_its_limit_is_kept_under_a_number(tmp_path):
    path = tmp_path / "node.log"
    file = LogFile(str(path), size_max=12, count=2)
    for number in range(7):
        file.write(f"line {number}\n")
    file.close()
    assert lines(path) == ["line 6"]
    assert lines(tmp_path / "node.log.0") == ["line 5"]
    assert lines(tmp_path / "node.log.1") == ["line 4"]
    assert len(os.listdir(tmp_path)) == 3


def test_none_is_kept(tmp_path):
    path = tmp_path / "node.log"
    file = LogFile(str(path), size_max=6, count=0)
    for number in range(3):
        file.write(f"{number}\n" * 3)
    file.close()
    assert os.listdir(tmp_path) == ["node.log"]


def test_a_file_that_was_moved_is_opened_again(tmp_path):
    path = tmp_path / "node.log"
    file = LogFile(str(path))
    file.write("before\n")
    file.finish()
    path.rename(tmp_path / "old")
    file.write("after\n")
    file.close()
    assert (lines(tmp_path / "old"), lines(path)) == (["before"], ["after"])


def test_a_directory_that_is_gone_costs_no_line_of_the_open_file(tmp_path):
    directory = tmp_path / "log"
    file = LogFile(str(directory / "node.log"))
    directory.rename(tmp_path / "moved")
    (tmp_path / "log").write_text("in the way")
    file.write("kept\n")
    file.close()
    assert lines(tmp_path / "moved" / "node.log") == [] or lines(
        tmp_path / "moved" / "node.log"
    ) == ["kept"]


def test_a_file_that_cannot_be_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotLog, match=r"cannot open log file .*file/node\.log: "):
        LogFile(str(tmp_path / "file" / "node.log"))


@pytest.fixture
def frozen(tmp_path):
    """A log file that takes some KB, and then nothing until somebody reads: as one on a file system that is frozen."""
    path = tmp_path / "node.log"
    os.mkfifo(path)
    with open(os.open(path, os.O_RDWR), "rb") as reader:
        os.set_blocking(reader.fileno(), False)
        file = LogFile(str(path))
        os.set_blocking(file._file.fileno(), True)
        yield file, reader


def test_nobody_waits_for_a_disk_that_takes_nothing(frozen):
    """The loop did, and with it all clients; lines that were dropped meanwhile are counted."""
    file, reader = frozen
    observer = LogObserver(Sinks([Sink(stream=file, level="info", form="json")]))
    for _ in range(12_000):
        observer.node_stopped("n" * 100)
    text = b""
    while b"lines_dropped" not in text:
        file.finish(0.01)
        text += reader.read() or b""
    *whole, last = map(json.loads, text.splitlines())
    assert {line["event"] for line in whole} == {"node_stopped"}
    assert last["event"] == "lines_dropped"
    assert (last["count"], last["reason"]) == (12_000 - len(whole), "the disk did not take them")
    file.close()


def test_nor_does_the_end(frozen):
    file, reader = frozen
    sinks = Sinks([Sink(stream=file, level="info")])
    for _ in range(2000):
        sinks.info("said", to="n" * 100)
    sinks.finish()
    sinks.close()
    assert file._thread.is_alive()
    while file._thread.is_alive():
        reader.read()
        file._thread.join(0.01)
    assert file._file.closed


def test_a_closed_log_drops_what_comes_later(tmp_path):
    file = LogFile(str(tmp_path / "node.log"))
    stream = io.StringIO()
    sinks = Sinks([Sink(stream=file, level="info"), Sink(stream=stream, level="info")])
    observer = LogObserver(sinks)
    observer.node_stopped("n")
    sinks.close()
    observer.node_stopped("n")
    assert file._file.closed
    assert (len(lines(tmp_path / "node.log")), stream.getvalue().count("\n")) == (1, 2)


def test_a_full_disk_does_not_spoil_the_end(tmp_path):
    path = tmp_path / "burrowmq.log"
    path.symlink_to("/dev/full")
    file = LogFile(str(path))
    file.write("a line\n")
    file.finish()
    file.close()
    assert file.write("later\n") == 0
    path.unlink()


def test_a_file_that_could_not_be_written_is_let_go_of_when_it_was_moved(tmp_path):
    path = tmp_path / "burrowmq.log"
    path.symlink_to("/dev/full")
    file = LogFile(str(path))
    file.write("lost\n")
    file.finish()
    path.unlink()
    assert file.write("first\n")
    file.close()
    assert path.read_text() == "first\n"


def test_a_file_that_cannot_be_renamed_goes_on_and_is_rotated_when_it_can(tmp_path, monkeypatch):
    path = tmp_path / "log"
    log = LogFile(str(path), size_max=10, count=2)
    rename = os.replace

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "replace", refuse)
    for number in range(5):
        log.write(f"line {number}\n")
    log.finish()
    assert path.read_text().splitlines() == [f"line {number}" for number in range(5)]
    monkeypatch.setattr(os, "replace", rename)
    log.write("later\n")
    log.close()
    assert (path.read_text(), (tmp_path / "log.0").read_text()[:7]) == ("later\n", "line 0\n")


@pytest.fixture
def pipe(tmp_path):
    path = tmp_path / "log"
    os.mkfifo(path)
    return str(path)


def test_a_pipe_that_nobody_reads_is_refused_at_once(pipe):
    with pytest.raises(CannotLog, match=r"cannot open log file .*/log: .*nobody reads there"):
        log_file(pipe, 0, 0)


def test_a_pipe_whose_reader_stops_keeps_nobody(pipe):
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    def read_all():
        found = b""
        with contextlib.suppress(BlockingIOError):
            while more := os.read(reader, 1 << 16):
                found += more
                sinks.give()
        return found.decode()

    try:
        file = log_file(pipe, 10, 1)
        sinks = Sinks([Sink(stream=file, level="info")])
        for number in range(400):
            sinks.files().info("said", number=number, text="long" * 1000)
        read = read_all()
        assert "number=0 " in read
        assert "number=399 " not in read
        assert "lines_dropped" in read
        sinks.files().info("last")
        sinks.close()
        sinks.files().info("later")
        assert "last" in read_all()
        assert file.write("later") == 0
    finally:
        os.close(reader)


def test_a_file_where_there_is_none_is_made(tmp_path):
    file = log_file(str(tmp_path / "new" / "log"), 0, 0)
    file.write("line\n")
    file.close()
    assert lines(tmp_path / "new" / "log") == ["line"]
