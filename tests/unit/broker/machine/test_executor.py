"""Work that is left to threads, of which the system gives few."""

from __future__ import annotations

import threading

import pytest

from burrowmq.broker.machine.executor import PatientExecutor


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Non-empty, the system gives no thread."""
    refused: list[bool] = []
    usual = threading.Thread.start

    def start(self: threading.Thread) -> None:
        if refused:
            raise RuntimeError("can't start new thread")
        usual(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    return refused


def test_work_waits_for_the_thread_that_there_is_and_is_done_once(refusing: list[bool]) -> None:
    may_go_on, done = threading.Event(), []
    with PatientExecutor(4) as executor:
        first = executor.submit(may_go_on.wait)
        refusing.append(True)
        others = [executor.submit(done.append, number) for number in range(10)]
        may_go_on.set()
        assert first.result()
        for other in others:
            other.result()
        refusing.clear()
    assert done == list(range(10))


def test_where_there_is_none_who_asks_is_told(refusing: list[bool]) -> None:
    refusing.append(True)
    with (
        PatientExecutor(4) as executor,
        pytest.raises(RuntimeError, match="can't start new thread"),
    ):
        executor.submit(threading.get_ident)
