"""What a query on `format("amqp-store")` may say.

Owns no state. Needs neither Spark nor Arrow.

    path            the data directory or backup (also `load(path)`), or a `file:` URL of it
    view            messages (default) or records
    vhost           one or more virtual hosts, separated by commas
    queues          one or more queues
    minSeq, maxSeq  sequence numbers, both included
    includeDeleted  also entries that are acknowledged and still in the index (`state` says which)
    verifyCrc       check every record that is read (default true)
    failOnDataLoss  an error for what should be there and is not (default true), or rows less
    includeHeadersRaw   a column with the octets of the header table
    partitionBytes  about how many bytes of files one task reads (64m)
    pushFilters     take `where` on vhost, queue and seq over from Spark; needs
                    spark.sql.python.filterPushdown.enabled, without which Spark refuses the query

Invariant: a name that is not known is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark_amqp.file_urls import path_in
from pyspark_amqp.options.reading import OptionReader

SEQ_MAX: Final = (1 << 62) - 1
VIEWS: Final = ("messages", "records")


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """A query's options."""

    path: str
    view: str = "messages"
    vhosts: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    min_seq: int = 0
    max_seq: int | None = None
    includes_deleted: bool = False
    is_checked: bool = True
    fails_on_loss: bool = True
    has_headers_raw: bool = False
    partition_bytes: int = 64 << 20
    pushes_filters: bool = False


def read_store_options(options: Mapping[str, str]) -> StoreOptions:
    """Return what the query says. Raises: BadOptions, with everything that is wrong."""
    reader = OptionReader(options)
    path = reader.required("path", "the data directory or the backup to read")
    found = StoreOptions(
        path=path_in(path) or path,
        view=reader.choice("view", VIEWS, "messages"),
        vhosts=reader.names("vhost"),
        queues=reader.names("queues"),
        min_seq=reader.number("minSeq", 0, least=0, most=SEQ_MAX) or 0,
        max_seq=reader.number("maxSeq", None, least=0, most=SEQ_MAX),
        includes_deleted=reader.flag("includeDeleted", default=False),
        is_checked=reader.flag("verifyCrc", default=True),
        fails_on_loss=reader.flag("failOnDataLoss", default=True),
        has_headers_raw=reader.flag("includeHeadersRaw", default=False),
        partition_bytes=reader.size("partitionBytes", 64 << 20) or 64 << 20,
        pushes_filters=reader.flag("pushFilters", default=False),
    )
    reader.finish("amqp-store")
    return found
