"""Which servers keep a stream, and the requests that change it. No I/O, owns no state.

Called by `broker.replicated.members`.

A stream is given more replicas, or fewer, by its `num_replicas`: whom it is given, and whom it loses, is the servers'
choice. A replica is moved away from a server by name, where to is their choice again, and the group has its copy of
all before it lets go of the old one. The consumers of a stream, which say 0 for their own replicas, are moved with it.

Source: nats-server 2.15, jetstream_cluster.go: jsClusteredStreamUpdateRequestLocked, reassignStreamPeers,
selectScaleDownPeers; errors.json.
"""

from __future__ import annotations

import json
from typing import Final, NamedTuple

from burrowmq.cluster import api
from burrowmq.cluster.api import Document, Request

REPLICAS_MAX: Final = 5
"""Those that JetStream gives a stream at most."""
_BUSY: Final = frozenset({
    10075,  # peer remap failed: nobody could take it now, or it is under way
    10124,  # stream move already in progress
    10226,  # stream reconfiguration already in progress
})  # fmt: skip


class Membership(NamedTuple):
    """As the leader of a stream says it."""

    leader: str
    members: tuple[str, ...]
    online: tuple[str, ...]
    replicas: int
    """Replicas that it is to have."""
    is_changing: bool
    """Whether the servers are at it."""
    is_current: bool
    """Whether each has all that the leader has."""

    @property
    def is_settled(self) -> bool:
        """Whether they are those that they are to be."""
        is_led = bool(self.leader) and self.is_current and not self.is_changing
        return is_led and self.replicas == len(self.members)


def membership_of(stream: Document) -> Membership:
    """Read the answer to `api.stream_state`."""
    cluster, config = (
        found if isinstance(found, dict) else {}
        for found in (stream.get("cluster"), stream.get("config"))
    )
    leader, members, online = api.members_of(stream)
    others = [each for each in cluster.get("replicas") or () if isinstance(each, dict)]
    count = config.get("num_replicas")
    return Membership(
        leader,
        members,
        online,
        count if isinstance(count, int) else 0,
        is_changing=cluster.get("desired") is not None,
        is_current=all(each.get("current") is not False for each in others),
    )


def resize(stream: Document, count: int) -> Request:
    """Have so many servers keep a stream, which is in all else as its state says."""
    config = stream.get("config")
    assert isinstance(config, dict), "a state of which the membership has been read"
    wanted = {**config, "num_replicas": count}
    subject = f"$JS.API.STREAM.UPDATE.{config.get('name')}"
    return Request(subject.encode(), json.dumps(wanted).encode())


def move_away(stream: str, server: str) -> Request:
    """Have a server that does not keep the stream yet do so in place of this one."""
    subject = f"$JS.API.STREAM.PEER.EVACUATE.{stream}"
    return Request(subject.encode(), json.dumps({"peer": server}).encode())


def is_for_now(refusal: api.Refusal) -> bool:
    """Whether the same may be changed in a moment."""
    return api.is_for_now(refusal) or refusal.error in _BUSY
