"""Publishing a piece: the first attempt wins, also when nobody gets an answer that says who that was.

Owns no state. Called by `take`.

Each attempt has an id of its own, which its file carries. A store that says "taken" may mean one's own file (a network
file system, or a client, that repeated a request whose answer was lost), and one that gives no answer, or says
"conflict", leaves open whether the file is there. Both are settled by reading: one's own id has won, no file means
once more, another id has lost.

Invariant: True only for the attempt whose file is there, False only when another's is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pyspark_amqp.spool.content import attempt_of
from pyspark_amqp.spool.files import Spool
from pyspark_amqp.spool.offset import Piece
from pyspark_amqp.spool.store import FileGone, OutcomeUnknown, SpoolError

_PAUSES_S: Final = (0.05, 0.2, 0.5, 1.0, 2.0)


def publish(
    spool: Spool,
    piece: Piece,
    attempt: str,
    source: Path,
    pause: Callable[[float], object] = time.sleep,
) -> bool:
    """Publish a file that `attempt` wrote; False: another attempt was first.

    Raises: SpoolError, when it is not known in the end, or the store refuses.
    """
    key = spool.key(piece)
    failure: OutcomeUnknown | None = None
    for pause_s in (*_PAUSES_S, None):
        try:
            if spool.store.create(key, source):
                return True
        except OutcomeUnknown as error:
            failure = error
        try:
            with spool.open(piece) as path:
                return attempt_of(path) == attempt
        except FileGone:
            if pause_s is not None:
                pause(pause_s)
    reason = failure or f"{spool}/{key}: is said to be taken, and is not there"
    raise SpoolError(str(reason)) from failure
