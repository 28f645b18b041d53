"""When a server ends because no memory is left, and when it may go on."""

from __future__ import annotations

import asyncio
import sys
import threading
from typing import Any, cast

import pytest

from burrowmq.broker.machine.out_of_memory import EX_OSERR, LAST_WORDS, OutOfMemory, has_some


class Process:
    """What became of it."""

    def __init__(self, *, has_memory: bool = False) -> None:
        self.said = 0
        self.statuses: list[int] = []
        self.memory = OutOfMemory(self.say, self.statuses.append, lambda: has_memory)

    def say(self) -> None:
        """Add to the log."""
        self.said += 1


def test_it_ends_with_its_last_words_on_standard_error_and_in_the_log(
    capfd: pytest.CaptureFixture[str],
) -> None:
    process = Process()
    process.memory.found(MemoryError())
    assert (process.statuses, process.said) == ([EX_OSERR], 1)
    assert capfd.readouterr().err == LAST_WORDS.decode()


def test_it_ends_also_where_the_log_finds_no_memory(capfd: pytest.CaptureFixture[str]) -> None:
    def say() -> None:
        raise MemoryError

    statuses: list[int] = []
    with pytest.raises(MemoryError):
        OutOfMemory(say, statuses.append).found(MemoryError())
    assert statuses == [EX_OSERR]
    assert capfd.readouterr().err == LAST_WORDS.decode()


def test_other_errors_are_nothing_to_it() -> None:
    process = Process()
    for error in (None, ValueError(), OSError(12, "Cannot allocate memory")):
        process.memory.found(error)
    assert process.statuses == []


@pytest.mark.parametrize(("has_memory", "statuses"), [(True, []), (False, [EX_OSERR])])
def test_what_is_too_large_for_one_connection_ends_it_only_where_small_things_find_none_either(
    has_memory: bool, statuses: list[int]
) -> None:
    process = Process(has_memory=has_memory)
    process.memory.found(MemoryError(), may_go_on=True)
    assert process.statuses == statuses


def test_here_is_some() -> None:
    assert has_some()


class Loop:
    """As much of a loop as it asks."""

    def __init__(self) -> None:
        self.handler: Any = None
        self.told: list[dict[str, Any]] = []

    def set_exception_handler(self, handler: Any) -> None:
        """Who is told from now on."""
        self.handler = handler

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Who was told before."""
        self.told.append(context)


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    return Loop()


def test_a_callback_of_the_loop_that_finds_none_ends_it(loop: Loop) -> None:
    process = Process(has_memory=True)
    process.memory.watch(cast("asyncio.AbstractEventLoop", loop))
    loop.handler(loop, {"message": "a turn's step failed", "exception": ValueError()})
    loop.handler(loop, {"message": "of one protocol", "exception": MemoryError(), "transport": 1})
    assert process.statuses == []
    loop.handler(loop, {"message": "a turn's step failed", "exception": MemoryError()})
    assert process.statuses == [EX_OSERR]
    assert [type(context["exception"]) for context in loop.told] == [
        ValueError, MemoryError, MemoryError,
    ]  # fmt: skip


def test_a_thread_that_finds_none_ends_it(loop: Loop, capfd: pytest.CaptureFixture[str]) -> None:
    process = Process()
    process.memory.watch(cast("asyncio.AbstractEventLoop", loop))

    def work() -> None:
        raise MemoryError

    thread = threading.Thread(target=work, name="worker")
    thread.start()
    thread.join()
    assert process.statuses == [EX_OSERR]
    assert "Exception in thread worker" in capfd.readouterr().err


def test_what_nobody_would_hear_of_ends_it(loop: Loop, capfd: pytest.CaptureFixture[str]) -> None:
    class Broken:
        """Nobody hears what its end raises."""

        def __del__(self) -> None:
            raise MemoryError

    process = Process()
    process.memory.watch(cast("asyncio.AbstractEventLoop", loop))
    Broken()
    assert process.statuses == [EX_OSERR]
    assert "Exception ignored" in capfd.readouterr().err
