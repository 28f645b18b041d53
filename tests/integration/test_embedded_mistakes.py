"""What is wrong, in each of the three places where an embedded broker runs: a clear error, or a clean end."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from burrowmq.embedded import Broker, BrokerError
from burrowmq.embedded.snapshots import Snapshot

MODES = ("thread", "process", "serve")


class Caller:
    """Makes and uses brokers of one mode; what has to be awaited is, on a loop of its own."""

    def __init__(self, mode: str, runner: asyncio.Runner) -> None:
        self._mode = mode
        self._runner = runner

    def make(self, *arguments: Any, **named: Any) -> Any:
        if self._mode == "serve":
            return Broker.serve(*arguments, **named)
        return Broker(*arguments, mode=self._mode, **named)

    def wait(self, found: Any) -> Any:
        """What a call gives in the end."""
        if not inspect.isawaitable(found):
            return found

        async def main() -> Any:
            return await found

        return self._runner.run(main())


@pytest.fixture(scope="module", params=MODES)
def caller(request: pytest.FixtureRequest) -> Iterator[Caller]:
    with asyncio.Runner() as runner:
        yield Caller(request.param, runner)


@pytest.fixture(scope="module")
def running(caller: Caller, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    broker = caller.make(tmp_path_factory.mktemp("broker") / "data", clock="manual")
    caller.wait(broker.start())
    yield broker
    caller.wait(broker.stop())


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [-1, -0.001, float("nan"), float("inf"), "1", None, 1e12])
def test_no_time(caller: Caller, running: Any, seconds: Any) -> None:
    before = running.clock.now()
    with pytest.raises(BrokerError, match="give seconds"):
        caller.wait(running.clock.advance(seconds))
    assert running.clock.now() == before


@pytest.mark.slow
def test_two_on_one_directory(caller: Caller, running: Any) -> None:
    other = caller.make(running.data_dir)
    with pytest.raises(BrokerError, match="is in use by process"):
        caller.wait(other.start())
    caller.wait(other.stop())
    assert running.is_running


def test_a_directory_without_a_place(
    caller: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BrokerError, match="data_dir is empty: name a directory, or leave it out"):
        caller.make("")
    assert caller.make(os.fsencode(tmp_path)).data_dir == str(tmp_path)
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(BrokerError, match="'data', and the working directory is no more"):
        caller.make("data")


@pytest.mark.slow
def test_a_directory_that_cannot_be(caller: Caller, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="ascii")
    with pytest.raises(BrokerError, match=r"cannot be used: .*choose another$"):
        caller.wait(caller.make(tmp_path / "file" / "data").start())


@pytest.mark.slow
def test_no_clock_and_stop_twice_and_use_after_the_stop(caller: Caller) -> None:
    broker = caller.make()
    calls = (
        lambda: broker.url,
        lambda: broker.port,
        broker.restart,
        broker.kill,
    )
    for call in calls:
        with pytest.raises(BrokerError, match=r"does not run: call start\(\)|does not run"):
            caller.wait(call())
    caller.wait(broker.start())
    with pytest.raises(BrokerError, match="runs already"):
        caller.wait(broker.start())
    with pytest.raises(BrokerError, match=r"clock=.manual."):
        caller.wait(broker.clock.advance(1))
    caller.wait(broker.stop())
    caller.wait(broker.stop())
    for call in calls:
        with pytest.raises(BrokerError, match="does not run"):
            caller.wait(call())
    with pytest.raises(BrokerError, match="was stopped: make another one"):
        caller.wait(broker.start())
    assert not os.path.exists(broker.data_dir)


LEFT = {
    "thread": "broker = Broker(); broker.start(); print(broker.data_dir)",
    "process": "broker = Broker(mode='process'); broker.start(); print(broker.data_dir)",
    "serve": """
async def main():
    global broker
    broker = await Broker.serve()
    print(broker.data_dir)
asyncio.run(main())
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_one_that_is_left_running_when_the_interpreter_ends(mode: str) -> None:
    code = f"import asyncio\nfrom burrowmq import Broker\n{LEFT[mode]}"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not os.path.exists(done.stdout.strip())


@pytest.mark.slow
def test_an_argument_of_another_kind_is_answered_by_a_process_too() -> None:
    with Broker(mode="process") as broker:
        vhost = broker.vhost("v").make()
        for call in (
            lambda: broker.add_vhost(cast("str", 5)),
            lambda: broker.add_vhost("\udcff"),
            lambda: vhost.messages(cast("str", ["q"])),
            lambda: vhost.restore(cast("Snapshot", "x")),
        ):
            with pytest.raises(BrokerError, match="Error: "):
                call()
        assert broker.is_running


@pytest.mark.slow
def test_a_name_may_be_of_the_suites_own_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "from enum import StrEnum\nNames = StrEnum('Names', {'ORDERS': 'orders'}, module=__name__)\n"
    (tmp_path / "names_of_a_suite.py").write_text(text, encoding="ascii")
    monkeypatch.syspath_prepend(tmp_path)
    names = importlib.import_module("names_of_a_suite").Names
    with Broker(mode="process") as broker:
        broker.add_vhost(names.ORDERS)
        with pytest.raises(BrokerError, match="a virtual host 'orders' already"):
            broker.add_vhost("orders")
