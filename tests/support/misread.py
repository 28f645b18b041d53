"""A read that goes wrong once, on its way from the disk: the bytes there are right.

Owns nothing: a patch of `SimFile.pread` uses it for the time of a `with`.
"""

from __future__ import annotations

from tests.support import sim_filesystem


class Misread:
    """The first long read of a file with such a name gives one wrong octet; the second one would be right."""

    def __init__(self, ending: str) -> None:
        self._read = sim_filesystem.SimFile.pread
        self._ending = ending
        self.is_done = False

    def bound(self) -> object:
        """A function, for a class to make a method of."""
        return lambda *given: self.read(*given)  # noqa: PLW0108 - bound already, it would get no file

    def read(self, file: sim_filesystem.SimFile, size: int, offset: int) -> bytes:
        data = self._read(file, size, offset)
        if self.is_done or size <= 400 or not file.path.endswith(self._ending):
            return data
        self.is_done = True
        return data[:100] + bytes((data[100] ^ 1,)) + data[101:]
