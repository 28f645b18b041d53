"""The simulated threads: turns, waits, time, and an end."""

from __future__ import annotations

import queue
import random
import sys
import threading
from types import ModuleType

import pytest

from burrowmq.storage import real_time
from burrowmq.storage.disk import threads as store_threads
from tests.support.sim_threads import SimThreads, Stuck


def threads(seed: int = 1, share: float = 0.5) -> SimThreads:
    return SimThreads(random.Random(seed), share)


def finish(machine: SimThreads) -> None:
    while machine.run_one() or machine.pass_time():
        pass


def interleaved(seed: int, share: float) -> list[str]:
    machine, seen = threads(seed, share), list[str]()

    def work(name: str) -> None:
        for at in range(5):
            seen.append(f"{name}{at}")
            machine.switch_point()

    for name in "ab":
        machine.threading.Thread(target=work, args=(name,), name=name).start()
    finish(machine)
    return seen


def test_a_seed_gives_one_order_and_another_seed_another() -> None:
    orders = {tuple(interleaved(seed, 0.5)) for seed in range(20)}
    assert len(orders) > 5
    assert interleaved(3, 0.5) == interleaved(3, 0.5)


def test_without_switches_a_thread_runs_to_its_end() -> None:
    assert interleaved(1, 0.0) in (
        [*["a0", "a1", "a2", "a3", "a4", "b0", "b1", "b2", "b3", "b4"]],
        [*["b0", "b1", "b2", "b3", "b4", "a0", "a1", "a2", "a3", "a4"]],
    )


def test_a_lock_may_be_taken_again_by_who_has_it_and_by_nobody_else() -> None:
    machine, seen = threads(share=1.0), list[str]()
    lock = machine.threading.RLock()

    def work(name: str) -> None:
        with lock:
            machine.switch_point()
            with lock:
                seen.append(name)
                machine.switch_point()
            seen.append(name)

    for name in "ab":
        machine.threading.Thread(target=work, args=(name,), name=name).start()
    finish(machine)
    assert seen in (["a", "a", "b", "b"], ["b", "b", "a", "a"])
    with lock:
        assert lock.acquire(blocking=False)
        lock.release()
    assert not lock.locked()


def test_a_queue_gives_what_was_put_or_nothing_in_time() -> None:
    machine, got = threads(), list[object]()
    box = machine.queue.SimpleQueue()

    def take() -> None:
        got.append(box.get())
        try:
            box.get(timeout=3.0)
        except queue.Empty:
            got.append(machine.now_s)

    machine.threading.Thread(target=take).start()
    machine.run_one()
    assert got == []
    box.put(7)
    finish(machine)
    assert got == [7, 3.0]
    assert box.empty()
    with pytest.raises(queue.Empty):
        box.get_nowait()


def test_a_lock_is_held_by_one() -> None:
    machine, seen = threads(share=1.0), list[str]()
    lock = machine.threading.Lock()

    def work(name: str) -> None:
        with lock:
            seen.append(name)
            machine.switch_point()
            seen.append(name)

    for name in "ab":
        machine.threading.Thread(target=work, args=(name,)).start()
    finish(machine)
    assert seen in (["a", "a", "b", "b"], ["b", "b", "a", "a"])
    assert lock.acquire(blocking=False)
    assert not lock.acquire(blocking=False)


def test_an_event_wakes_who_waits_and_time_jumps_only_when_nobody_can_go_on() -> None:
    machine, seen = threads(), list[object]()
    event = machine.threading.Event()

    def wait() -> None:
        seen.append(event.wait(timeout=60.0))
        seen.append(event.wait(timeout=60.0))

    def ring() -> None:
        machine.time.sleep(100.0)
        event.set()

    for target in (wait, ring):
        machine.threading.Thread(target=target).start()
    finish(machine)
    assert seen == [False, True]
    assert machine.now_s == 100.0
    assert machine.time.monotonic() == 100.0


def test_joining_lets_others_go_on_and_waiting_for_nobody_is_an_error() -> None:
    machine = threads()
    thread = machine.threading.Thread(target=lambda: machine.time.sleep(1.0))
    thread.start()
    thread.join()
    assert machine.now_s == 1.0
    with pytest.raises(Stuck):
        machine.threading.Event().wait()


def test_a_killed_thread_takes_no_step_more() -> None:
    machine, seen = threads(share=1.0), list[int]()

    def work() -> None:
        for at in range(10):
            seen.append(at)
            machine.switch_point()

    machine.threading.Thread(target=work).start()
    machine.run_one()
    machine.kill()
    assert seen == [0]
    assert not machine.run_one()


def test_a_thread_that_is_killed_while_it_waits_for_a_condition_takes_none_either() -> None:
    """It has given the lock up for that time, and leaves the block without it."""
    machine, seen = threads(), list[BaseException]()
    lock = machine.threading.RLock()
    condition = machine.threading.Condition(lock)

    def work() -> None:
        try:
            with condition:
                condition.wait_for(lambda: False)
        except Exception as error:
            seen.append(error)

    machine.threading.Thread(target=work).start()
    machine.run_one()
    machine.kill()
    assert seen == []
    assert not machine.run_one()


def test_modules_see_the_stand_ins_while_they_are_in_place() -> None:
    machine = threads()
    with machine.in_place():
        assert store_threads.threading is machine.threading  # type: ignore[comparison-overlap]
        assert store_threads.time is machine.time  # type: ignore[comparison-overlap]
    assert (store_threads.threading, store_threads.time) == (threading, real_time)


def test_no_module_of_store_and_broker_asks_another_clock() -> None:
    machine = threads()
    with machine.in_place():
        others = [
            name
            for name, module in sys.modules.items()
            if name.startswith(("burrowmq.storage.", "burrowmq.broker."))
            and isinstance(vars(module).get("time"), ModuleType)
        ]
        assert others == []
        assert store_threads.time is machine.time  # type: ignore[comparison-overlap]
    assert store_threads.time is real_time


def test_who_waits_for_something_under_a_lock_lets_others_have_it_meanwhile() -> None:
    machine, seen = threads(share=1.0), list[str]()
    calm = machine.threading.Condition(machine.threading.Lock())

    def wait() -> None:
        with calm:
            calm.wait_for(lambda: "done" in seen)
            seen.append("waited")

    def do() -> None:
        with calm:
            machine.switch_point()
            seen.append("done")
            calm.notify_all()

    for target in (wait, do):
        machine.threading.Thread(target=target).start()
    finish(machine)
    assert seen == ["done", "waited"]
