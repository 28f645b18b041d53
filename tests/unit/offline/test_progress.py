"""One line on a terminal, nothing elsewhere."""

from __future__ import annotations

import io

from burrowmq.offline.progress import Progress, size_text


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_file_gets_nothing() -> None:
    stream = io.StringIO()
    with Progress(stream, "checking", 100) as progress:
        progress.add(50)
    assert stream.getvalue() == ""
    assert progress.done_bytes == 50


def test_a_terminal_gets_one_line_that_is_gone_afterwards() -> None:
    stream = Terminal()
    times = iter([1.0, 1.1, 1.5])
    with Progress(stream, "checking", 4000, lambda: next(times)) as progress:
        progress.add(1000)
        progress.add(10)  # too soon for another line
        progress.add(2000)
    lines = stream.getvalue().split("\r")
    assert lines[1] == "checking  25 %  1.0 kB of 4.0 kB"
    assert lines[2] == "checking  75 %  3.0 kB of 4.0 kB"
    assert lines[3].strip() == ""
    assert len(lines) == 5


def test_sizes_are_short() -> None:
    assert [size_text(n) for n in (0, 999, 1500, 16_777_216, 10**15)] == [
        "0 B", "999 B", "1.5 kB", "16.8 MB", "1000.0 TB",
    ]  # fmt: skip
