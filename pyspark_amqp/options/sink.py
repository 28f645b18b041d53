"""What a write may say: where rows are published, how they are confirmed, which ids they get.

Owns no state. Called by the data source where a write is planned; a SinkOptions is pickled to the
executors.

Invariant: exchange and routing key are the options' where a row has no column or null for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark_amqp.options.connection import Addresses, read_addresses
from pyspark_amqp.options.reading import OptionReader

WINDOW: Final = 2000
CONFIRM_TIMEOUT_S: Final = 60.0
DETERMINISTIC, COLUMN, NONE = "deterministic", "column", "none"
_BY_WRITER: Final = ("queryName", "checkpointLocation")


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """`df.write.format("amqp")` and `df.writeStream.format("amqp")`."""

    addresses: Addresses
    exchange: str = ""
    routing_key: str = ""
    has_routing_key: bool = True
    confirm_window: int = WINDOW
    confirm_timeout_s: float = CONFIRM_TIMEOUT_S
    is_mandatory: bool = True
    fails_on_return: bool = True
    delivery_mode: int = 2
    message_ids: str = DETERMINISTIC
    message_id_prefix: str | None = None
    declares_queue: bool = False
    max_rate_per_task: int | None = None


def read_sink_options(options: Mapping[str, str]) -> SinkOptions:
    """Read the options of a write.

    Raises: BadOptions.
    """
    found = OptionReader(options)
    exchange, routing_key = found.text("exchange") or "", found.text("routingKey")
    declares_queue = found.flag("declareQueue", default=False)
    if declares_queue and (exchange or not routing_key):
        found.problems.append(
            "option 'declareQueue' declares the queue that 'routingKey' names; "
            "it needs one, and no exchange"
        )
    for name, text in (("exchange", exchange), ("routingKey", routing_key or "")):
        if len(text.encode()) > 255:
            found.refuse(name, text, "longer than 255 octets")
    message_ids = found.choice("messageIdMode", (DETERMINISTIC, COLUMN, NONE), DETERMINISTIC)
    prefix = found.text("messageIdPrefix")
    if prefix and message_ids != DETERMINISTIC:
        found.problems.append(f"option 'messageIdPrefix' needs messageIdMode={DETERMINISTIC}")
    if prefix and len(prefix.encode()) > 200:
        found.refuse("messageIdPrefix", prefix, "longer than 200 octets")
    is_mandatory = found.flag("mandatory", default=True)
    on_return = found.choice("onReturn", ("fail", "count"), "fail")
    made = SinkOptions(
        addresses=read_addresses(found),
        exchange=exchange,
        routing_key=routing_key or "",
        has_routing_key=routing_key is not None,
        confirm_window=found.number("confirmWindow", WINDOW, least=1, most=1_000_000) or WINDOW,
        confirm_timeout_s=found.milliseconds("confirmTimeoutMs", CONFIRM_TIMEOUT_S, least_ms=1),
        is_mandatory=is_mandatory,
        fails_on_return=on_return == "fail",
        delivery_mode=found.number("deliveryMode", 2, least=1, most=2) or 2,
        message_ids=message_ids,
        message_id_prefix=prefix,
        declares_queue=declares_queue,
        max_rate_per_task=found.number("maxRatePerTask", None, least=1, most=10_000_000),
    )
    found.finish('write.format("amqp")', elsewhere=_BY_WRITER)
    return made
