"""Long families of metrics: a series for each of very many objects, written a few lines at a time.

Owns no state. prometheus_client writes what is short; for a hundred thousand queues it would take twenty seconds, and a
gigabyte for the samples. Here a value is looked at when its line is written, so that nothing of a page is in memory
as a whole. Called by `management.prometheus.exposition`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Generic, TypeVar

from prometheus_client.utils import floatToGoString

from burrowmq.management.answers.turns import pieces

T = TypeVar("T")

_as_text: Callable[[float], str] = floatToGoString

LINES_PER_TURN = 2_000


class Series(Generic[T]):
    """One family, whose first lines are `head`: a line for each of `things` that has a value.

    `labels` are those of the things, as text.
    """

    def __init__(
        self,
        head: bytes,
        name: str,
        things: Sequence[T],
        labels: Sequence[str],
        value: Callable[[T], Any],
    ) -> None:
        self._head = head
        self._name = name
        self._things = things
        self._labels = labels
        self._value = value

    async def lines(self) -> AsyncIterator[bytes]:
        """The text of the family, piece by piece."""
        yield self._head
        name, value = self._name, self._value
        async for piece in pieces(zip(self._things, self._labels, strict=True), LINES_PER_TURN):
            lines = [
                f"{name}{{{labels}}} {_as_text(found) if found else '0.0'}\n"
                for thing, labels in piece
                if (found := value(thing)) is not None
            ]
            yield "".join(lines).encode("utf-8", "replace")


def labels_text(names: Sequence[str], values: Sequence[str]) -> str:
    """The labels of one series by name, as they stand between the braces."""
    pairs = sorted(zip(names, values, strict=True))
    return ",".join([f'{name}="{_escaped(value)}"' for name, value in pairs])


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
