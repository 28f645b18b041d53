"""What a process holds, to be compared with what it holds later: what is new then was left behind.

A number of threads or of files would not do: those of another test may still be going away at the first look.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path


def held() -> set[object]:
    """Each thread that runs, and each open descriptor with what it is open on."""
    found: set[object] = set(threading.enumerate())
    for descriptor in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one that this listing reads through
            found.add((descriptor.name, os.readlink(descriptor)))
    return found
