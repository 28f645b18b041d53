"""What all tests share: the header that says which speed runs, and settings of the property tests."""

from __future__ import annotations

import gc
import importlib
import os

import pytest
from hypothesis import HealthCheck, settings

from tests.support import pika_sockets
from tests.support.speeds import IS_INTERPRETED, is_left_to_the_other

settings.register_profile(
    "default", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("default")

pika_sockets.close_when_collected()

CHOOSERS = {"codec": "burrowmq.protocol.codec", "record packer": "burrowmq.storage.record"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that `scripts.both_speeds` gives."""
    parser.addoption(
        "--both-speeds",
        action="store_true",
        help="the other speed runs beside this run: what is the same at both is run by one of them",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave to the run beside this one what it runs for both."""
    if not config.getoption("--both-speeds"):
        return
    kept, left = [], []
    for item in items:
        is_left = is_left_to_the_other(item.nodeid, is_interpreted=IS_INTERPRETED)
        (left if is_left else kept).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


def pytest_collection_finish() -> None:
    """What was loaded for the tests lasts: a full collection in the middle of one took 0.3 s to look at it again."""
    gc.collect()
    gc.freeze()


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Name the implementations that the run uses (BURROWMQ_PURE=1 forces the interpreted ones)."""
    lines = [f"{part}: {_implementation(module)}" for part, module in CHOOSERS.items()]
    return [*lines, f"BURROWMQ_PURE={os.environ.get('BURROWMQ_PURE', '')}"]


def _implementation(module: str) -> str:
    try:
        return str(getattr(importlib.import_module(module), "NAME", "unknown"))
    except ImportError as error:
        return f"not importable ({error})"
