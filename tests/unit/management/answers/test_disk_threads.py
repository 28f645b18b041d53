"""Requests that wait for a disk: they hold up nobody else, and are told when it does not answer."""

from __future__ import annotations

import asyncio
import threading

import pytest

from burrowmq.management.answers.disk_threads import DiskThreads
from burrowmq.management.answers.reply import ApiError


def test_what_the_disk_says_is_the_answer() -> None:
    async def ask() -> None:
        threads = DiskThreads()
        assert await threads.ask(divmod, 7, 2) == (3, 1)
        with pytest.raises(ZeroDivisionError):
            await threads.ask(divmod, 7, 0)
        with pytest.raises(SystemExit):
            await threads.ask(_leave)

    asyncio.run(ask())


def _leave() -> None:
    raise SystemExit


def test_a_disk_that_does_not_answer_is_told_and_asked_no_more_than_so_often() -> None:
    async def ask() -> None:
        threads = DiskThreads(most=2, patience_s=0.01)
        answers = threading.Event()
        for _ in range(2):
            with pytest.raises(ApiError, match=r"503 .*has not answered for 0.01 s"):
                await threads.ask(answers.wait)
        with pytest.raises(ApiError, match=r"503 .*has not answered 2 requests before this one"):
            await threads.ask(answers.wait)
        assert await asyncio.to_thread(divmod, 7, 2) == (3, 1)
        answers.set()
        for thread in _asking():
            thread.join()
        await asyncio.sleep(0)
        assert await threads.ask(answers.wait)

    asyncio.run(ask())


def test_nobody_waits_at_the_end_for_a_disk_that_does_not_answer() -> None:
    answers = threading.Event()

    async def ask() -> None:
        with pytest.raises(ApiError):
            await DiskThreads(patience_s=0.01).ask(answers.wait)

    asyncio.run(ask())
    (waiting,) = _asking()
    answers.set()
    waiting.join()


def _asking() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "asks the disk"]


def test_a_thread_that_cannot_be_had_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def ask() -> None:
        threads = DiskThreads()
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            with pytest.raises(ApiError, match=r"503 .*can't start new thread"):
                await threads.ask(divmod, 7, 2)
        assert threads._count == 0

    asyncio.run(ask())
