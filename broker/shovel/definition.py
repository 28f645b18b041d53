"""A shovel's parameter, or its entry in the configuration, as what is to be done.

Owns no state. The value was validated (`rules`); names with and without `src-` or `dest-` in front mean the same, the
longer one counts. Source: rabbit_shovel_parameters:parse, rabbit_amqp091_shovel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, Literal, cast

from burrowmq.broker.link.uri import Target, parse
from burrowmq.broker.shovel.rules import DEFAULT_VHOST, NEVER, QUEUE_LENGTH
from burrowmq.protocol.table import FieldTable, from_json
from burrowmq.records import dataclass

AckMode = Literal["no-ack", "on-publish", "on-confirm"]
PREFETCH_COUNT: Final = 1000
RECONNECT_DELAY_S: Final = 5
RECONNECT_DELAY_MIN_S: Final = 0.1
"""Nobody is asked for a connection a thousand times a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where messages come from: a queue, or an exchange through a queue of the shovel's own."""

    targets: tuple[Target, ...]
    queue: str | None = None
    queue_arguments: FieldTable = field(default_factory=dict)
    exchange: str = ""
    exchange_key: str = ""
    consumer_arguments: FieldTable = field(default_factory=dict)
    prefetch_count: int = PREFETCH_COUNT
    delete_after: int | None = None
    """So many messages; None: no number."""
    is_deleted_after_length: bool = False
    """As many as are in the queue at the start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where they go; what is None stays as the message has it."""

    targets: tuple[Target, ...]
    queue: str | None = None
    queue_arguments: FieldTable = field(default_factory=dict)
    exchange: str | None = None
    exchange_key: str | None = None
    adds_forward_headers: bool = False
    adds_timestamp: bool = False
    properties: Mapping[str, object] = field(default_factory=dict)

    @property
    def changes_headers(self) -> bool:
        """Whether messages cannot go on as they came."""
        return self.adds_forward_headers or self.adds_timestamp or bool(self.properties)


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """One shovel."""

    name: str
    vhost: str
    """Empty for a static one."""
    source: Source
    destination: Destination
    ack_mode: AckMode = "on-confirm"
    reconnect_delay_s: float = RECONNECT_DELAY_S
    """0: no second attempt."""
    is_static: bool = False


def read(name: str, vhost: str, value: object, *, is_static: bool = False) -> Definition:
    """The shovel that a validated parameter describes. Raises: BadUri."""
    given = cast("dict[str, Any]", value if isinstance(value, dict) else {})

    def either(key: str, end: str, default: object) -> Any:
        return given.get(f"{end}-{key}", given.get(key, default))

    limit = either("delete-after", "src", NEVER)
    source = Source(
        targets=_targets(given["src-uri"]),
        queue=given.get("src-queue"),
        queue_arguments=_table(given.get("src-queue-args")),
        exchange=given.get("src-exchange", ""),
        exchange_key=given.get("src-exchange-key", ""),
        consumer_arguments=_table(given.get("src-consumer-args")),
        prefetch_count=int(either("prefetch-count", "src", PREFETCH_COUNT)) & 0xFFFF,
        delete_after=limit if isinstance(limit, int) else None,
        is_deleted_after_length=limit == QUEUE_LENGTH,
    )
    destination = Destination(
        targets=_targets(given["dest-uri"]),
        queue=given.get("dest-queue"),
        queue_arguments=_table(given.get("dest-queue-args")),
        exchange=given.get("dest-exchange"),
        exchange_key=given.get("dest-exchange-key"),
        adds_forward_headers=either("add-forward-headers", "dest", default=False),
        adds_timestamp=either("add-timestamp-header", "dest", default=False),
        properties=either("publish-properties", "dest", {}) or {},
    )
    return Definition(
        name=name,
        vhost=vhost,
        source=source,
        destination=destination,
        ack_mode=given.get("ack-mode", "on-confirm"),
        reconnect_delay_s=_delay_s(given.get("reconnect-delay", RECONNECT_DELAY_S)),
        is_static=is_static,
    )


def _targets(uris: object) -> tuple[Target, ...]:
    """Without a virtual host they lead to the default one, whichever the parameter is in."""
    each = uris if isinstance(uris, list) else [uris]
    return tuple(parse(str(uri), DEFAULT_VHOST) for uri in each)


def _delay_s(given: float) -> float:
    return max(RECONNECT_DELAY_MIN_S, float(given)) if given > 0 else 0.0


def _table(value: object) -> FieldTable:
    table: FieldTable = from_json(value) if isinstance(value, dict) else {}
    return table
