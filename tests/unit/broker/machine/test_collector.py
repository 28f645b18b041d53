"""The collector: what is settled is out of its sight, what is let go of is collected."""

from __future__ import annotations

import subprocess
import sys

import pytest

CIRCLE = """
import gc, sys, weakref
from burrowmq.broker.machine.collector import PythonCollector

class Circle:
    def __init__(self):
        self.me = self

gc.disable()
collector = PythonCollector()
"""


@pytest.mark.parametrize(
    "steps",
    [
        # A circle that nobody holds goes with a collection, and before anything is settled.
        "gone = weakref.ref(Circle()); collector.collect(); assert gone() is None",
        "gone = weakref.ref(Circle()); collector.settle(); assert gone() is None",
        # What is settled is not looked at, even when it has become garbage; until it is let go of.
        "before = gc.get_freeze_count();"  # 3.12 has 375 objects there that nothing collects
        "held = Circle(); gone = weakref.ref(held); collector.settle(); del held; collector.collect();"
        "assert gone() is not None; assert gc.get_freeze_count() > 1000;"
        "collector.let_go(); assert gone() is None; assert gc.get_freeze_count() == before",
        # While it rests nothing goes by itself; then it is as it was before.
        "gc.enable()\nwith collector.resting(): assert not gc.isenabled()\nassert gc.isenabled()",
        "with collector.resting(): pass\nassert not gc.isenabled()",
        # From a start to the stop it comes by more rarely.
        "before = gc.get_threshold(); collector.settle(); collector.settle();"
        "young, middle, old = gc.get_threshold(); assert (young, middle) == (5000, 2);"
        "assert old > 10**8 or sys.version_info >= (3, 14);"  # which has no such look
        "collector.let_go(); assert gc.get_threshold() == before",
        "before = gc.get_threshold(); collector.let_go(); assert gc.get_threshold() == before",
    ],
)
def test_circles(steps: str) -> None:
    """In a process of its own: the collector is the whole process's."""
    subprocess.run([sys.executable, "-c", CIRCLE + steps], check=True)
