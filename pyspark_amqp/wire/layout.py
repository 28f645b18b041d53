"""Fixed layouts of octets that go with the code that uses them, wherever that goes.

Owns no state. Called by modules that have layouts among their names.

With Spark Connect the classes of this package travel to a server that has none of it (`datasource.register`), and with
them all that their modules name. A `struct.Struct` cannot be pickled, this one can. It costs nothing where it is used.
"""

from __future__ import annotations

from struct import Struct


class Layout(Struct):
    """A `struct.Struct` that pickles."""

    def __reduce__(self) -> tuple[type[Layout], tuple[str]]:
        return Layout, (self.format,)
