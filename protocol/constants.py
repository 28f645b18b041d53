"""Numbers of AMQP 0-9-1 that more than one module needs.

Owns no state; imported by every module of this package and by the broker. The property bits are the
protocol's own 16-bit flag word; the message flags live above them in the same integer, so that one test
of a message's flags answers "does any costly feature concern this message?".

Invariant: the compiled codec repeats these values (it imports nothing of ours); the contract suite
compares both.

Source: AMQP 0-9-1 specification, section 4.2 and amqp0-9-1.xml; limits as RabbitMQ has them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

FRAME_METHOD: Final = 1
FRAME_HEADER: Final = 2
FRAME_BODY: Final = 3
FRAME_HEARTBEAT: Final = 8
FRAME_END: Final = 0xCE
FRAME_OVERHEAD: Final = 8
FRAME_MIN_SIZE: Final = 4096

PROTOCOL_HEADER: Final = b"AMQP\x00\x00\x09\x01"
HEARTBEAT_FRAME: Final = b"\x08\x00\x00\x00\x00\x00\x00\xce"

CLASS_CONNECTION: Final = 10
CLASS_CHANNEL: Final = 20
CLASS_ACCESS: Final = 30
CLASS_BASIC: Final = 60
METHOD_PUBLISH: Final = 40
METHOD_RETURN: Final = 50
METHOD_DELIVER: Final = 60
METHOD_GET_OK: Final = 71
METHOD_ACK: Final = 80
METHOD_REJECT: Final = 90
METHOD_NACK: Final = 120

PROP_CONTENT_TYPE: Final = 1 << 15
PROP_CONTENT_ENCODING: Final = 1 << 14
PROP_HEADERS: Final = 1 << 13
PROP_DELIVERY_MODE: Final = 1 << 12
PROP_PRIORITY: Final = 1 << 11
PROP_CORRELATION_ID: Final = 1 << 10
PROP_REPLY_TO: Final = 1 << 9
PROP_EXPIRATION: Final = 1 << 8
PROP_MESSAGE_ID: Final = 1 << 7
PROP_TIMESTAMP: Final = 1 << 6
PROP_TYPE: Final = 1 << 5
PROP_USER_ID: Final = 1 << 4
PROP_APP_ID: Final = 1 << 3
PROP_CLUSTER_ID: Final = 1 << 2
PROP_UNKNOWN: Final = 0b11

PERSISTENT: Final = 1 << 16
"""The delivery_mode octet is 2."""
MANDATORY: Final = 1 << 17
IMMEDIATE: Final = 1 << 18
MAYBE_CC: Final = 1 << 19
"""The header payload has the octets of the key CC or BCC somewhere, perhaps by chance: decode it to be sure."""
ON_DISK: Final = 1 << 20
"""Set by storage on messages that it loaded; never by a codec."""
HIDDEN: Final = 1 << 21
"""Behind exchange and routing key, `address` holds field tables that clients do not see (`protocol.hidden`)."""
NEEDS_LOOK: Final = 1 << 22
"""Before it is routed, the header has to be decoded: `reply_to` asks for a direct reply, or `expiration` is not simply
a number of milliseconds. Without it an `expiration` is a TTL, and every other property is nobody's business here."""

DIRECT_REPLY: Final = b"amq.rabbitmq.reply-to"
"""The `reply_to` that asks for a direct reply."""
DEATH_MAX: Final = 4096
"""Octets by which a death can make a header longer at most, unless there are keys in a CC header."""
EXPIRATION_MAX_MS: Final = 315_360_000_000
"""The longest TTL: ten years."""

TABLE_DEPTH_MAX: Final = 128
"""How deep tables and arrays may be nested, the outermost counted. What prints, compares and stores tables calls
itself for each level, with at most five calls, and Python allows a thousand."""
TABLE_SIZE_MAX: Final = 128 * 1024
"""Most octets of a table, as many as a frame of the default frame_max holds: this bounds the time to decode one."""

WAIT_BODY_MAX: Final = 32 * 1024
"""Largest body for which a codec waits, instead of handing out the frames as they come."""
WAIT_BUFFER_MAX: Final = 64 * 1024
"""Octets a codec keeps for a publish that it waits for (a body may come in many tiny frames)."""
WAIT_FRAMES_MAX: Final = 8
"""Body frames that a codec walks again at each read while it waits for the rest of a body."""
COUNT_MAX: Final = 0xFFFFFFFF
"""The most messages, or consumers, that a reply can speak of; a queue may have more."""

KNOWN_ADDRESSES: Final = 4096
"""Addresses of the last publishes that a codec knows, so that their messages share one object each."""


class ReplyCode(IntEnum):
    """The reply codes of AMQP 0-9-1, by the names that reply texts begin with."""

    SUCCESS = 200
    CONTENT_TOO_LARGE = 311
    NO_ROUTE = 312
    NO_CONSUMERS = 313
    CONNECTION_FORCED = 320
    INVALID_PATH = 402
    ACCESS_REFUSED = 403
    NOT_FOUND = 404
    RESOURCE_LOCKED = 405
    PRECONDITION_FAILED = 406
    FRAME_ERROR = 501
    SYNTAX_ERROR = 502
    COMMAND_INVALID = 503
    CHANNEL_ERROR = 504
    UNEXPECTED_FRAME = 505
    RESOURCE_ERROR = 506
    NOT_ALLOWED = 530
    NOT_IMPLEMENTED = 540
    INTERNAL_ERROR = 541
