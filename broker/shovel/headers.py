"""What a shovel writes into the messages that it moves, when its destination asks for it.

`x-shovelled` tells where a message has been, the newest first; `x-shovelled-timestamp` when; properties of the
destination replace the message's own. Each message is decoded and its header written anew, which costs some ten times
what relaying it costs; a header that would become too large loses its oldest entries first, as dead letters do.

Owns no state. Source: rabbit_shovel_util:update_headers, rabbit_basic:prepend_table_header.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from burrowmq.broker.shovel.definition import Definition
from burrowmq.protocol.codec import Message
from burrowmq.protocol.errors import FrameError
from burrowmq.protocol.properties import Properties, decode, header_size, rewrite
from burrowmq.protocol.table import FieldTable, FieldValue, Long

SHOVELLED: Final = "x-shovelled"
TIMESTAMP: Final = "x-shovelled-timestamp"
INVALID: Final = "x-invalid-headers"


class Marks:
    """What one run of a shovel writes; made when both its ends are known."""

    def __init__(
        self,
        definition: Definition,
        cluster_name: str,
        source_uri: str,
        destination_uri: str,
        frame_max: int,
    ) -> None:
        destination = definition.destination
        self._frame_max = frame_max
        self._properties: Mapping[str, object] = destination.properties
        self._adds_timestamp = destination.adds_timestamp
        self._entry: FieldTable | None = None
        if destination.adds_forward_headers:
            self._entry = {
                "shovelled-by": cluster_name,
                "shovel-type": "static" if definition.is_static else "dynamic",
                "shovel-name": definition.name,
                "shovel-vhost": definition.vhost,
                "src-uri": source_uri,
                "dest-uri": destination_uri,
                **{f"src-{key}": value for key, value in source_names(definition).items()},
                **{f"dest-{key}": value for key, value in destination_names(definition).items()},
            }

    def applied(self, messages: list[Message]) -> list[Message]:
        """The messages with what is written into them."""
        now = Long(time.time()) if self._adds_timestamp else None
        return [self._mark(message, now) for message in messages]

    def _mark(self, message: Message, now: Long | None) -> Message:
        properties = decode(message.raw)
        for name, value in self._properties.items():
            setattr(properties, name, value)
        if self._entry is not None or now is not None:
            headers = dict(properties.headers or {})
            if self._entry is not None:
                _prepend(headers, self._entry)
            if now is not None:
                headers[TIMESTAMP] = now
            properties.headers = headers
        while True:
            marked = self._rewritten(message, properties)
            if marked is not None:
                return marked
            entries = (properties.headers or {}).get(SHOVELLED)
            if not isinstance(entries, list) or not entries:
                return message  # nothing of ours to leave out: it goes on as it came
            entries.pop()

    def _rewritten(self, message: Message, properties: Properties) -> Message | None:
        """None when the header has grown beyond what can be sent: no frame of it is divided."""
        try:
            marked = rewrite(message, properties, message.address)
        except FrameError:
            return None
        return None if header_size(marked.raw) > self._frame_max else marked


def _prepend(headers: FieldTable, entry: FieldTable) -> None:
    before = headers.get(SHOVELLED)
    entries: list[FieldValue] = [entry]
    if isinstance(before, list):
        entries += before
    elif SHOVELLED in headers:
        invalid = headers.get(INVALID)
        kept: FieldTable = dict(invalid) if isinstance(invalid, dict) else {}
        values = kept.get(SHOVELLED)
        kept[SHOVELLED] = [before, *(values if isinstance(values, list) else [])]
        headers[INVALID] = kept
    headers[SHOVELLED] = entries


def source_names(definition: Definition) -> dict[str, str]:
    """What the source is called, by the ends of RabbitMQ's names for it."""
    source = definition.source
    if source.queue is not None:
        return {"queue": source.queue}
    return {"exchange": source.exchange, "exchange-key": source.exchange_key}


def destination_names(definition: Definition) -> dict[str, str]:
    """What the destination is called."""
    destination = definition.destination
    found = {
        "queue": destination.queue,
        "exchange": destination.exchange,
        "exchange-key": destination.exchange_key,
    }
    return {key: value for key, value in found.items() if value is not None}
