"""The keys of the message store: files, indexes and buffers, and what a publisher confirm promises.

`schema` has them as the part `store` of a `NodeConfig`. Owns no state.
"""

from __future__ import annotations

from burrowmq.config import units
from burrowmq.config.option import option
from burrowmq.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """Where messages live and what a publisher confirm means."""

    confirm: str = option(
        "confirm",
        units.choice("fsync", "written"),
        "fsync",
        "What a publisher confirm promises: `fsync` on disk, `written` handed to the operating system (RabbitMQ's).",
        ours=True,
    )
    confirms_cover_acks: bool = option(
        "confirm.covers_acks",
        units.flag,
        "true",
        "A confirm also promises that what the same connection acknowledged before that publish is as safe as it.",
        ours=True,
    )
    default_mode: str = option(
        "classic_queue.default_mode",
        units.choice("bounded", "cached"),
        "bounded",
        "Queues in default mode: `bounded` keeps at most 2,048 messages in RAM, a start batch and what was requeued"
        " besides; `cached` keeps them until paging.",
        ours=True,
    )
    default_version: int = option(
        "classic_queue.default_version",
        units.integer(1, 2),
        "2",
        "Storage version of queues that do not ask for one (RabbitMQ 3.13: 1, RabbitMQ 4: 2).",
    )
    embed_below_bytes: int = option(
        "queue_index_embed_msgs_below",
        units.binary_size(0),
        "4096",
        "Smaller messages are kept per queue; larger ones once in the shared message store.",
    )
    segment_size_limit_bytes: int = option(
        "msg_store_file_size_limit",
        units.binary_size(64 * 1024, 2**31),
        "16777216",
        "Segment file size of the message store; never change it for existing data.",
    )
    index_module: str = option(
        "msg_store_index_module",
        units.choice_of(
            {
                "array": "array",
                "paged": "paged",
                "sqlite": "sqlite",
                "rabbit_msg_store_ets_index": "array",
            }
        ),
        "array",
        "Index of the message store: `array` (5 bytes of RAM a message; RabbitMQ's `rabbit_msg_store_ets_index` is"
        " taken for it), `paged` or `sqlite` (bounded RAM). May be changed at any start.",
    )
    segment_entry_count: int = option(
        "queue_index_segment_entry_count",
        units.integer(256, 65536),
        "16384",
        "Messages in one segment of a queue's index, for data directories made from now on.",
    )
    journal_entry_max: int = option(
        "queue_index_max_journal_entries",
        units.integer(1, 2**31),
        "32768",
        "Entries in the journal of a version 1 queue above which it is moved to the segment files.",
    )
    cache_size_bytes: int = option(
        "classic_queue_store_v2_max_cache_size",
        units.binary_size(0),
        "524288",
        "Write buffer of one queue's store; reads take twice as much at once.",
    )
    check_crc32: bool = option(
        "classic_queue_store_v2_check_crc32",
        units.flag,
        "true",
        "Verify the checksum of messages read from a queue's store on their way to a consumer.",
    )
    commit_log: str = option(
        "store_commit_log",
        units.choice_of({"on": "on", "off": "off"}),
        "on",
        "`on`: small queues have no files of their own, and what is written to many queues is synced once,"
        " in a log of the node. May be changed at any start.",
        ours=True,
    )
    scrub_period_ms: int = option(
        "store_scrub_period",
        units.duration_ms(0),
        "7d",
        "Everything that is stored is read again and checked within this time; 0: only when somebody asks.",
        ours=True,
    )
    scrub_rate_limit_bytes: int = option(
        "store_scrub_rate_limit",
        units.binary_size(64 * 1024),
        "8MiB",
        "Bytes a second that this reads at most, also when somebody asks for it.",
        ours=True,
    )
    backlog_limit_bytes: int = option(
        "store_backlog_limit",
        units.binary_size(64 * 1024),
        "8MiB",
        "Bytes waiting for the disk above which publishing connections are paused.",
        ours=True,
    )


AS_INSTALLED = StoreConfig()
"""The store of a node whose configuration says nothing about it."""
