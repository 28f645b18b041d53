"""The spool: messages made durable before they are acknowledged, and given to Spark only from there.

Owns no state but the files. It stands between a queue, which forgets what is acknowledged, and Spark,
which asks for the same batch again after a crash: queue to spool at least once, or once where messages
have unique ids; spool to Spark the same rows every time.

    offset    which pieces a micro-batch has
    store     what a place for files must do: `posix` and `objects` do it, `places` finds the one that is named
    files     pieces, commits, sweeping
    marks     what a task says beside its piece
    content   the Arrow file of a piece
    publish   the first attempt wins, whatever answers are lost
    take      a task's steps from the broker to the spool
"""

from pyspark_amqp.spool.content import Taken, how_much, keep_ids, message_ids, read_batches
from pyspark_amqp.spool.files import Outcome, Published, Spool
from pyspark_amqp.spool.marks import Mark
from pyspark_amqp.spool.offset import BadOffset, Offset, Piece, Share, fair_shares
from pyspark_amqp.spool.places import open_store
from pyspark_amqp.spool.store import FileGone, SpoolError, check
from pyspark_amqp.spool.take import Doubt, StaleTask, TakeOptions, take, taking

__all__ = [
    "BadOffset",
    "Doubt",
    "FileGone",
    "Mark",
    "Offset",
    "Outcome",
    "Piece",
    "Published",
    "Share",
    "Spool",
    "SpoolError",
    "StaleTask",
    "TakeOptions",
    "Taken",
    "check",
    "fair_shares",
    "how_much",
    "keep_ids",
    "message_ids",
    "open_store",
    "read_batches",
    "take",
    "taking",
]
