"""Shares the black-box fixtures with the tests of this folder."""

from pathlib import Path

import pytest

from tests.support.black_box import (
    broker,
    channel,
    connect,
    exchange,
    name,
    own_broker,
    speed_name,
    wire,
)
from tests.support.two_nodes import two

__all__ = ["broker", "channel", "connect", "exchange", "name", "own_broker", "two", "wire"]


def pytest_report_header(config: pytest.Config) -> str:
    """Say which speed the broker processes run at."""
    return f"broker processes: {speed_name()}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark this folder's tests as ones that start broker processes."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.needs_server)
