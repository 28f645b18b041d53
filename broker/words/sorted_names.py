"""Names in order, kept so as they come and go: who shows a page of a hundred thousand queues need not sort them first.

The names lie in blocks of at most `BLOCK_MAX`, each in order and before the next: to add or remove one costs a search
and a move within its block, whatever the number of names. State owned: the blocks. Invariants: no block is empty; no
name is there twice (who has the names in a dictionary knows that it is new).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from itertools import chain

BLOCK_MAX = 1024


class SortedNames:
    """Those of one virtual host's queues."""

    __slots__ = ("_blocks", "_firsts", "_listed")

    def __init__(self) -> None:
        self._blocks: list[list[str]] = []
        self._firsts: list[str] = []  # of each block
        self._listed: list[str] | None = []

    def add(self, name: str) -> None:
        """Take in a name that is not here."""
        self._listed = None
        if not self._blocks:
            self._blocks, self._firsts = [[name]], [name]
            return
        at = max(0, bisect_right(self._firsts, name) - 1)
        block = self._blocks[at]
        insort(block, name)
        self._firsts[at] = block[0]
        if len(block) > BLOCK_MAX:
            # Names that come in order fill their blocks; others split one in the middle.
            cut = BLOCK_MAX if block[-1] == name else BLOCK_MAX // 2
            self._blocks.insert(at + 1, block[cut:])
            self._firsts.insert(at + 1, block[cut])
            del block[cut:]

    def remove(self, name: str) -> None:
        """Let go of a name that is here."""
        self._listed = None
        at = bisect_right(self._firsts, name) - 1
        block = self._blocks[at]
        del block[bisect_left(block, name)]
        if not block:
            del self._blocks[at], self._firsts[at]
        else:
            self._firsts[at] = block[0]

    def listed(self) -> list[str]:
        """All of them in order, as they are now; not to be changed."""
        if self._listed is None:
            self._listed = list(chain.from_iterable(self._blocks))
        return self._listed
