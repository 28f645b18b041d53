"""Which scenarios run beside each other, and when."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.differential import runner as module
from tests.differential.broker import Broker, Place
from tests.differential.runner import Runner

PLACES = (
    Place(product="RabbitMQ", amqp_port=1, http_port=1, command=[]),
    Place(product="BurrowMQ", amqp_port=1, http_port=1, command=[]),
)
BOUND_S = 30


def test_names_of_its_own_are_compared_as_the_words_they_were_made_of() -> None:
    def scenario(broker: Broker) -> Any:
        name = broker.own("word")
        assert name != "word"
        return {name: [f"there is no '{name}'"]}

    assert module.record("a.b", scenario, PLACES[0]) == {"word": ["there is no 'word'"]}


def test_a_scenario_that_fails_on_one_has_ended_on_the_other_too() -> None:
    """The next one would meet it."""
    fails, ended = threading.Event(), threading.Event()

    def scenario(broker: Broker) -> Any:
        if broker.place.product == "RabbitMQ":
            fails.set()
            raise ValueError("as planned")
        assert fails.wait(BOUND_S)
        ended.set()
        return []

    runner = Runner(PLACES, {"a.b": scenario}, [])
    with pytest.raises(ValueError, match="as planned"):
        runner.judge("a.b", ["a.b"])
    assert ended.is_set()
    runner.close()


def test_so_many_of_a_module_run_at_once_on_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when one broker is done long before the other."""
    monkeypatch.setattr(module, "at_once", lambda _: 2)
    lock = threading.Lock()
    running = {place.product: 0 for place in PLACES}
    most = dict(running)
    ours_are_done = threading.Semaphore(0)

    def scenario(broker: Broker) -> Any:
        product = broker.place.product
        with lock:
            running[product] += 1
            most[product] = max(most[product], running[product])
        if product == "BurrowMQ":
            ours_are_done.release()
        else:
            assert ours_are_done.acquire(timeout=BOUND_S)
        with lock:
            running[product] -= 1
        return []

    names = [f"a.{number}" for number in range(12)]
    runner = Runner(PLACES, dict.fromkeys(names, scenario), [])
    for name in names:
        assert runner.judge(name, names).word == "equal"
    runner.close()
    assert max(most.values()) <= 2


def test_what_runs_in_the_background_can_be_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "at_once", lambda scenario: int(scenario is background))
    done: list[str] = []
    may_end = threading.Event()

    def background(broker: Broker) -> Any:
        assert may_end.wait(BOUND_S)
        done.append(broker.place.product)
        return []

    def front(broker: Broker) -> Any:
        del broker
        return []

    runner = Runner(PLACES, {"a.b": background, "c.d": front}, [])
    runner.judge("c.d", ["a.b", "c.d"])
    assert done == []
    may_end.set()
    runner.settle()
    assert sorted(done) == ["BurrowMQ", "RabbitMQ"]
    runner.close()
