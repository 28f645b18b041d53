"""The threads that the loop leaves work to: where the system gives no further one, work waits for those that there are.

Python's own executor raises where it gets no thread (`ulimit -u`, `TasksMax=`, `pids.max`), also while another of its
threads is about to be idle, and does the work all the same when that is: an answer over HTTP was a 500, or cut off in
its middle, and what was tried again was done twice. Only who comes first, when there is none yet, is told.

State owned: Python's. Made by `broker.__main__`, for its loop.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Final

NO_THREAD: Final = "can't start new thread"
"""What Python says of a thread that the system refuses, in a RuntimeError."""


class PatientExecutor(ThreadPoolExecutor):
    """See the module."""

    def _adjust_thread_count(self) -> None:
        try:
            super()._adjust_thread_count()
        except RuntimeError:
            if not self._threads:
                raise
