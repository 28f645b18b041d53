"""Chooses the hot codec: the compiled one if it was built, the interpreted one otherwise or on request.

Owns no state. Imported by everything that needs a run or a message, so that the whole process uses one
implementation; ``NAME`` says which (start-up log, status, test header). ``BURROWMQ_PURE=1`` forces the
interpreted one. Both give equal events and octets: tests/property/protocol holds them to it.

Source: docs/adr on the two codecs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING or os.environ.get("BURROWMQ_PURE", "") not in ("", "0"):
    from burrowmq.protocol.codec import _codec_py as _chosen
else:
    try:
        from burrowmq.protocol.codec import _codec_c as _chosen
    except ImportError:
        from burrowmq.protocol.codec import _codec_py as _chosen

NAME: str = _chosen.NAME
"""``compiled`` or ``interpreted``."""

CodecEvent: TypeAlias = "_chosen.PublishRun | _chosen.AckRun | _chosen.Frame | _chosen.BadFrame"

Message = _chosen.Message
PublishRun = _chosen.PublishRun
AckRun = _chosen.AckRun
Frame = _chosen.Frame
BadFrame = _chosen.BadFrame
HotCodec = _chosen.HotCodec
Ring = _chosen.Ring
RING_IS_QUICK: bool = _chosen.RING_IS_QUICK
Sheaf = _chosen.Sheaf
look_up = _chosen.look_up
look_up_by_headers = _chosen.look_up_by_headers
look_up_by_ring = _chosen.look_up_by_ring
sheaves = _chosen.sheaves
shares = _chosen.shares
places = _chosen.places
load_message = _chosen.load_message
take = _chosen.take
body_bytes = _chosen.body_bytes
raw_bytes = _chosen.raw_bytes
encode_deliver = _chosen.encode_deliver
deliver_parts = _chosen.deliver_parts
encode_get_ok = _chosen.encode_get_ok
encode_return = _chosen.encode_return
encode_ack = _chosen.encode_ack
encode_nack = _chosen.encode_nack
split_address = _chosen.split_address
join_address = _chosen.join_address
header_fields = _chosen.header_fields
header_flags = _chosen.header_flags
deadlines = _chosen.deadlines
are_of_user = _chosen.are_of_user
by_priority = _chosen.by_priority
first_deaths = _chosen.first_deaths
with_fields = _chosen.with_fields
hash_octets = _chosen.hash_octets
jump = _chosen.jump

__all__ = [
    "NAME",
    "RING_IS_QUICK",
    "AckRun",
    "BadFrame",
    "CodecEvent",
    "Frame",
    "HotCodec",
    "Message",
    "PublishRun",
    "Ring",
    "Sheaf",
    "are_of_user",
    "body_bytes",
    "by_priority",
    "deadlines",
    "deliver_parts",
    "encode_ack",
    "encode_deliver",
    "encode_get_ok",
    "encode_nack",
    "encode_return",
    "first_deaths",
    "hash_octets",
    "header_fields",
    "header_flags",
    "join_address",
    "jump",
    "load_message",
    "look_up",
    "look_up_by_headers",
    "look_up_by_ring",
    "places",
    "raw_bytes",
    "shares",
    "sheaves",
    "split_address",
    "take",
    "with_fields",
]
