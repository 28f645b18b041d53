"""What a scenario made is undone after it, and nothing else is."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from tests.differential import broker as module
from tests.differential.broker import Broker, Place


class _NoLink:
    """A connection that is closed, so that nothing is sent."""

    opened = 0

    def __init__(self, port: int, **options: Any) -> None:
        del port, options
        self.inboxes: dict[int, deque[Any]] = {}
        self.is_closed = True
        _NoLink.opened += 1

    def close(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize(("options", "opened"), [({}, 2), ({"vhost": "other"}, 1)])
def test_only_what_was_made_in_the_default_vhost_is_deleted_by_name(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, str], opened: int
) -> None:
    """Another scenario may have a queue of that name there, and both run at once."""
    monkeypatch.setattr(module, "Link", _NoLink)
    monkeypatch.setattr(_NoLink, "opened", 0)
    place = Place(product="none", amqp_port=1, http_port=1, command=[])
    broker = Broker(place)
    broker.peer(**options).exchange("x")
    broker.finish()
    assert _NoLink.opened == opened
