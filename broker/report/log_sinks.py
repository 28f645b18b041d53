"""Where log lines go: standard error, a file, or both, each with its level and form; levels may change while it runs.

State: the loggers that `broker.report.log.make_logger` made, one for all sinks of a level and a form, and the open log
file with its thread. A file that grows beyond its limit is renamed to `name.0`, the one before to `name.1` and so on,
up to the count that is kept; a file that somebody moved away (logrotate) is opened again under its name. Nobody waits
for the disk behind the file, as nobody waits for the reader of a console, or of a pipe or a terminal in a file's place,
which is not rotated either. Made by `broker.__main__`; written on the loop and by the store's threads, one whole line
at a time.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TextIO, cast

from burrowmq.broker.report.console import END_PATIENCE_S, KEPT_BYTES, Console, nobody
from burrowmq.broker.report.log import make_logger
from burrowmq.records import dataclass


class CannotLog(Exception):
    """The log file cannot be opened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sink:
    """One place for lines; `stream` is anything that takes text."""

    stream: Any
    level: str
    form: str = "plaintext"


class Sinks:
    """A logger that writes to several sinks."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = tuple(sinks)
        self._level = ""  # of all, once somebody has set one
        for at, each in enumerate(self._sinks):
            if isinstance(each.stream, Console | LogFile):
                each.stream.on_resumed = partial(self._say_dropped, at)
        self._loggers = _loggers([(each.level, each) for each in self._sinks])

    def files(self) -> Sinks:
        """Those of the sinks that are files: for what standard error has in other words."""
        return Sinks([each for each in self._sinks if isinstance(each.stream, LogFile | LogPipe)])

    def finish(self) -> None:
        """Have the files take all lines by now, if their disk does within half a second."""
        for each in self._sinks:
            if isinstance(each.stream, LogFile):
                each.stream.finish()

    def close(self) -> None:
        """Close the files among the sinks; lines that come later are dropped there."""
        for each in self._sinks:
            if isinstance(each.stream, LogFile | LogPipe):
                each.stream.close()

    def give(self) -> bool:
        """Hand over what slow readers of pipes left lying and take by now; whether something is left."""
        pipes = [each.stream for each in self._sinks if isinstance(each.stream, LogPipe)]
        for pipe in pipes:
            pipe.flush()
        return any(pipe.is_behind for pipe in pipes)

    def set_level(self, level: str) -> None:
        """The least severe level that every sink takes from now on."""
        self._level = level
        self._loggers = _loggers([(level, each) for each in self._sinks])

    def _say_dropped(self, at: int, count: int) -> None:
        sink = self._sinks[at]
        is_file = isinstance(sink.stream, LogFile)
        reason = "the disk did not take them" if is_file else "nobody read them"
        logger = make_logger(self._level or sink.level, sink.form, sink.stream)
        logger.warning("lines_dropped", count=count, reason=reason)

    def debug(self, event: str, **fields: Any) -> None:
        """A line for somebody who looks for a fault."""
        for logger in self._loggers:
            logger.debug(event, **fields)

    def info(self, event: str, **fields: Any) -> None:
        """A line about ordinary events."""
        for logger in self._loggers:
            logger.info(event, **fields)

    def warning(self, event: str, **fields: Any) -> None:
        """A line that somebody should read."""
        for logger in self._loggers:
            logger.warning(event, **fields)

    def error(self, event: str, **fields: Any) -> None:
        """A line about what went wrong."""
        for logger in self._loggers:
            logger.error(event, **fields)

    def critical(self, event: str, **fields: Any) -> None:
        """A line about a failure that stops the broker."""
        for logger in self._loggers:
            logger.critical(event, **fields)


class _Several:
    """Streams that have the same lines: to make one costs more than to write it."""

    def __init__(self, streams: Sequence[Any]) -> None:
        self._streams = streams

    def write(self, text: str) -> int:
        for each in self._streams:
            each.write(text)
        return len(text)

    def flush(self) -> None:
        for each in self._streams:
            each.flush()


def _loggers(sinks: Sequence[tuple[str, Sink]]) -> list[Any]:
    """A logger for all sinks that have a level, which is given, and a form in common."""
    streams: dict[tuple[str, str], list[Any]] = {}
    for level, sink in sinks:
        streams.setdefault((level, sink.form), []).append(sink.stream)
    return [
        make_logger(level, form, cast("TextIO", each[0] if len(each) == 1 else _Several(each)))
        for (level, form), each in streams.items()
    ]


class LogFile:
    """A text file that is appended to, rotated by size, and opened again when it was moved.

    A thread of its own does that, for as long as the disk lets it wait: a file system that is frozen, or whose server
    is gone, would else stop whoever logs. What is not written yet is kept, up to KEPT_BYTES; lines beyond that are
    dropped, and `on_resumed` is told how many when the file has taken those before them.
    """

    def __init__(self, path: str, size_max: int = 0, count: int = 10) -> None:
        self.path = path
        self._size_max = size_max
        self._count = count
        self._change = threading.Condition()
        # Of these: the lines that nobody writes yet, how much is not written, how many were dropped.
        self._kept: deque[str] = deque()
        self._unwritten_bytes = 0
        self._dropped = 0
        self._is_closed = False
        self.on_resumed: Callable[[int], None] = nobody
        self._file = _open(path)
        self._thread = threading.Thread(target=self._work, name="log file", daemon=True)
        self._thread.start()

    def write(self, text: str) -> int:
        """Have it appended, or drop it; it counts as written."""
        with self._change:
            if self._is_closed:
                return 0
            if self._dropped or self._unwritten_bytes + len(text) > KEPT_BYTES:
                self._dropped += max(1, text.count("\n"))
            else:
                self._kept.append(text)
                self._unwritten_bytes += len(text)
                self._change.notify_all()
        return len(text)

    def flush(self) -> None:
        """Nothing waits longer than the disk wants it to."""

    def finish(self, patience_s: float = END_PATIENCE_S) -> None:
        """Wait until all is handed to the operating system, but no longer than that."""
        with self._change:
            self._change.wait_for(lambda: not self._unwritten_bytes, patience_s)

    def close(self) -> None:
        """Write no more: lines of whoever still has some are dropped."""
        with self._change:
            self._is_closed = True
            self._change.notify_all()
        self._thread.join(END_PATIENCE_S)

    def _work(self) -> None:
        while texts := self._next():
            for text in texts:
                self._append(text)
            with suppress(OSError):
                self._file.flush()
            with self._change:
                self._unwritten_bytes -= sum(map(len, texts))
                self._change.notify_all()
                dropped = 0 if self._unwritten_bytes else self._dropped
                self._dropped -= dropped
            if dropped:
                self.on_resumed(dropped)
        with suppress(OSError):  # what was not written until now is dropped
            self._file.close()

    def _next(self) -> deque[str]:
        """Wait for lines; there are none behind the end."""
        with self._change:
            self._change.wait_for(lambda: self._kept or self._is_closed)
            texts, self._kept = self._kept, deque()
            return texts

    def _append(self, text: str) -> None:
        """A line that cannot be written is dropped: the broker goes on without it."""
        # A file that cannot be renamed, or looked at, still takes lines: it grows until it can.
        with suppress(OSError):
            self._follow()
            if self._size_max and self._file.tell() + len(text) > self._size_max:
                self._rotate()
        with suppress(OSError):
            self._file.write(text)

    def _follow(self) -> None:
        """Open the file again when another, or none, has its name now."""
        try:
            there = os.stat(self.path)
            ours = os.fstat(self._file.fileno())
            is_ours = (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)
        except FileNotFoundError:
            is_ours = False
        if not is_ours:
            self._replace()

    def _replace(self) -> None:
        try:
            fresh = _open(self.path)
        except CannotLog:
            return  # the open file still takes lines
        old, self._file = self._file, fresh
        with suppress(OSError):
            old.close()

    def _rotate(self) -> None:
        for number in range(self._count - 1, 0, -1):
            older = f"{self.path}.{number - 1}"
            if os.path.exists(older):
                os.replace(older, f"{self.path}.{number}")
        if self._count:
            os.replace(self.path, f"{self.path}.0")
        else:
            os.unlink(self.path)
        self._replace()


class LogPipe(Console):
    """A pipe or a terminal where a log file is expected; lines that nobody reads are kept, then dropped."""

    def __init__(self, path: str) -> None:
        """Open it. Raises CannotLog, also where nobody reads."""
        super().__init__(_open(path))
        self._is_closed = False

    def write(self, text: str) -> int:
        """As a console does, until it is closed."""
        return 0 if self._is_closed else super().write(text)

    def flush(self) -> None:
        """Hand over what is taken at once."""
        if not self._is_closed:
            super().flush()

    def close(self) -> None:
        """Write no more: lines of whoever still has some are dropped."""
        with self._lock:
            self.finish()
            self._is_closed = True
            with suppress(OSError):
                self._stream.close()


def log_file(path: str, size_max: int, count: int) -> LogFile | LogPipe:
    """What takes the lines for a file of that name. Raises CannotLog."""
    try:
        is_file = stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        is_file = True  # it is made, or refused in words
    return LogFile(path, size_max, count) if is_file else LogPipe(path)


def _open(path: str) -> TextIO:
    try:
        directory = os.path.dirname(path)
        if directory:
            os.makedirs(directory, exist_ok=True)
        return open(path, "a", encoding="utf-8", errors="backslashreplace", opener=without_waiting)
    except OSError as error:
        way = "look at that disk, or name another with log.file or log.dir"
        if error.errno == errno.ENXIO:
            way = (
                "nobody reads there: start who does first, or name another with log.file or log.dir"
            )
        raise CannotLog(f"cannot open log file {path}: {error.strerror}; {way}") from error


def without_waiting(path: str, flags: int) -> int:
    """Open it; a pipe without a reader is refused, where it would else be waited for."""
    return os.open(path, flags | os.O_NONBLOCK, 0o666)


def console(level: str, form: str, stream: str = "stderr") -> Sink:
    """The sink that writes to standard error, or to standard output; characters that it does not know, by number."""
    text: Any = sys.stdout if stream == "stdout" else sys.stderr
    return Sink(stream=text if isinstance(text, Console) else Console(text), level=level, form=form)
