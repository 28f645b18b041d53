"""Standard output and error whose readers are slow, stop, come back, or are gone."""

from __future__ import annotations

import fcntl
import io
import os
import sys
from collections.abc import Iterator
from select import PIPE_BUF

import pytest

from burrowmq.broker.report.console import KEPT_BYTES, Console, Consoles

LINE = "x" * 99 + "\n"


class Pipe:
    """A console on a pipe, and its other end."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        fcntl.fcntl(self.writing, fcntl.F_SETPIPE_SZ, 4 * PIPE_BUF)
        os.set_blocking(self.reading, False)
        self.stream = open(self.writing, "w", encoding="utf-8")
        self.console = Console(self.stream)
        self.told: list[int] = []
        self.console.on_resumed = self.told.append

    def read(self) -> str:
        """What is there."""
        try:
            return os.read(self.reading, 1 << 20).decode()
        except BlockingIOError:
            return ""

    def read_all(self) -> str:
        """What is there and what comes after it."""
        text = ""
        while part := self.read():
            text += part
            self.console.flush()
        return text


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    pipe = Pipe()
    yield pipe
    pipe.stream.close()
    os.close(pipe.reading)


def test_what_is_taken_is_written_at_once(pipe: Pipe) -> None:
    assert pipe.console.write("a line\n") == 7
    pipe.console.writelines(["and ", "more\n"])
    assert pipe.read() == "a line\nand more\n"


def test_a_reader_that_stops_stops_nobody_and_gets_what_was_kept(pipe: Pipe) -> None:
    lines = [f"{number:099}\n" for number in range(1000)]
    for line in lines:
        pipe.console.write(line)
    assert pipe.read_all() == "".join(lines)
    assert not pipe.told


def test_lines_beyond_what_is_kept_are_dropped_and_counted(pipe: Pipe) -> None:
    written = 0
    while not pipe.console._dropped:
        pipe.console.write(LINE)
        written += 1
    pipe.console.write("one\ntwo\n")
    assert KEPT_BYTES <= written * len(LINE) <= KEPT_BYTES + 5 * PIPE_BUF
    assert pipe.read_all() == LINE * (written - 1)
    assert pipe.told == [3]
    pipe.console.write("again\n")
    assert pipe.read() == "again\n"


def test_a_line_may_be_longer_than_what_is_taken_at_once(pipe: Pipe) -> None:
    line = "y" * 20 * PIPE_BUF + "\n"
    pipe.console.write(line)
    assert pipe.read_all() == line


def test_a_reader_that_is_gone_costs_nothing(pipe: Pipe) -> None:
    os.close(pipe.reading)
    pipe.console.write(LINE)
    pipe.console.write(LINE)
    assert not pipe.console._kept
    pipe.reading = os.open(os.devnull, os.O_RDONLY)


def test_what_a_full_disk_does_not_take_is_dropped() -> None:
    with open("/dev/full", "w") as full:
        console = Console(full)
        console.write(LINE)
        assert not console._kept


def test_who_asked_for_no_waiting_gets_it_in_parts(pipe: Pipe) -> None:
    os.set_blocking(pipe.writing, False)
    for _ in range(1000):
        pipe.console.write(LINE)
    assert pipe.read_all() == LINE * 1000


def test_a_stream_without_a_descriptor_is_written_to_as_it_is() -> None:
    stream = io.StringIO()
    console = Console(stream)
    console.write("a line\n")
    assert stream.getvalue() == "a line\n"
    assert console.getvalue() == "a line\n"


def test_characters_that_it_does_not_know_are_shown_by_number(pipe: Pipe) -> None:
    pipe.stream.reconfigure(encoding="latin-1")
    Console(pipe.stream).write("\u20ac\n")
    assert pipe.read() == "\\u20ac\n"


def test_the_end_waits_a_little_for_a_reader(pipe: Pipe) -> None:
    for _ in range(1000):
        pipe.console.write(LINE)
    pipe.console.finish(0.01)
    assert 50 < pipe.read_all().count("\n") <= 4 * PIPE_BUF // len(LINE)


def test_what_complains_while_a_line_is_written_comes_behind_it(pipe: Pipe) -> None:
    class Complaining(bytes):
        """Octets whose end is complained about."""

        def __getitem__(self, part: object) -> bytes:
            pipe.console.write("complaint\n")
            return bytes(self)

    pipe.console._kept.append(Complaining(b"first\n"))
    pipe.console._kept_bytes += 6
    pipe.console.flush()
    assert pipe.read() == "first\ncomplaint\n"


def test_it_is_behind_until_its_reader_has_everything(pipe: Pipe) -> None:
    assert not pipe.console.is_behind
    for _ in range(1000):
        pipe.console.write(LINE)
    assert pipe.console.is_behind
    pipe.read_all()
    assert not pipe.console.is_behind


def test_both_are_as_they_were_afterwards(capfd: pytest.CaptureFixture[str]) -> None:
    usual = sys.stdout, sys.stderr
    with Consoles() as consoles:
        assert isinstance(sys.stderr, Console)
        sys.stderr.write("error\n")
        print("said")
        assert not consoles.give()
    assert (sys.stdout, sys.stderr) == usual
    assert tuple(capfd.readouterr()) == ("said\n", "error\n")
