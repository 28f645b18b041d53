"""An empty deque that stays empty, for those who share one until they have an item of their own.

An empty deque weighs 700 bytes, of which a queue had six. State owned: none. Invariant: whoever would add to it, and so
to all who share it, gets an error instead.
"""

from __future__ import annotations

from collections import deque
from typing import NoReturn, TypeVar

T = TypeVar("T")


class NoItems(deque[T]):
    """One for each kind of item; to compare with `is`."""

    __slots__ = ()

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError("this deque is shared: make one before the first item")

    append = appendleft = extend = extendleft = insert = __iadd__ = _refuse
