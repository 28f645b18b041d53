"""Who calls the API and what they may do.

Owns no state. On TCP a caller is a user with Basic credentials; on the control socket it is the node's own operating
system user (or root), checked by the kernel's peer credentials, with every right and no password. Permission failures
are 401 as in RabbitMQ. Source: rabbit_mgmt_util:is_authorized and the user tags of the management plugin.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import os
import socket
import struct
import sys
from dataclasses import dataclass

from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.rules.auth import User
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.management.aio import web

CREDENTIALS = struct.Struct("3i")
"""Linux's struct ucred: process, user, group."""
SOL_LOCAL, LOCAL_PEERCRED = 0, 1
XUCRED = struct.Struct("2Ih16I")
"""The same of macOS and the BSDs, struct xucred: version, user, groups."""

# The levels that each tag grants; administrator grants all. No tag grants `trusted`, the level of the control socket.
GRANTS = {
    "management": frozenset({"management"}),
    "policymaker": frozenset({"management", "policymaker"}),
    "monitoring": frozenset({"management", "monitoring"}),
    "administrator": frozenset({"management", "policymaker", "monitoring", "administrator"}),
}
REFUSALS = {
    "management": "Not management user",
    "policymaker": "User not authorised to access object",
    "monitoring": "Not monitor user",
    "administrator": "Not administrator user",
    "trusted": "Asked for over the control socket only",
}


@dataclass(frozen=True, slots=True)
class Caller:
    """The user behind a request."""

    name: str
    tags: tuple[str, ...]
    is_trusted: bool = False

    def may(self, level: str) -> bool:
        """Whether the caller's tags reach a level."""
        return self.is_trusted or any(level in GRANTS.get(tag, ()) for tag in self.tags)

    def may_see(self, node: RunningNode, vhost: str) -> bool:
        """Whether a vhost is open to the caller: monitoring sees all, others need a permission in it."""
        return self.may("monitoring") or (vhost, self.name) in node.auth.permissions

    def may_change(self, node: RunningNode, vhost: str) -> bool:
        """Whether the caller's tags count in a vhost: who only watches others' needs a permission to change there."""
        return self.may("administrator") or (vhost, self.name) in node.auth.permissions


def open_vhosts(caller: Caller, node: RunningNode) -> list[Vhost]:
    """Those that the caller may see, by name."""
    return [node.vhosts[name] for name in sorted(node.vhosts) if caller.may_see(node, name)]


def caller_of(user: User) -> Caller:
    """A user who has logged in."""
    return Caller(user.name, tuple(str(tag) for tag in user.tags))


TRUSTED = Caller("burrowctl", ("administrator",), is_trusted=True)


def peer_is_owner(request: web.Request) -> bool:
    """Whether the process at the other end of the control socket runs as our user or as root."""
    transport = request.transport
    peer = None if transport is None else transport.get_extra_info("socket")
    if peer is None:
        return False
    uid = _uid_of(peer)
    return uid is None or uid in (0, os.geteuid())


def _uid_of(peer: socket.socket) -> int | None:
    """The user at the other end; None where the system does not say: then the mode of the socket's file has to do."""
    linux = getattr(socket, "SO_PEERCRED", None)
    if linux is not None:
        raw = peer.getsockopt(socket.SOL_SOCKET, linux, CREDENTIALS.size)
        return int(CREDENTIALS.unpack(raw)[1])
    if sys.platform == "darwin" or "bsd" in sys.platform:
        raw = peer.getsockopt(SOL_LOCAL, LOCAL_PEERCRED, XUCRED.size)
        return int(XUCRED.unpack(raw)[1])
    return None


def peer_is_loopback(request: web.Request) -> bool:
    """Whether the request came from this machine; only such a request may log in as guest."""
    try:
        return ipaddress.ip_address((request.remote or "").split("%")[0]).is_loopback
    except ValueError:
        return False


class UnreadableLogin(Exception):
    """An Authorization header that cannot be read: 400 with an empty body."""


LOGIN = "auth"
"""The parameter of a query that is a secret, wherever it stands."""
BY_LINK = ("/api/definitions", "/api/all-configuration")


def basic_credentials(request: web.Request) -> tuple[str, str] | None:
    """User and password of the Authorization header; None when there is none.

    Definitions are downloaded and sent by links and forms, too, which have no such header: there a query may have it.

    Raises: UnreadableLogin.
    """
    header = request.headers.get("Authorization")
    if LOGIN in request.query and request.path.startswith(BY_LINK):
        header = f"Basic {request.query[LOGIN].replace(' ', '+')}"
    if header is None:
        return None
    scheme, _, token = header.partition(" ")
    try:
        user, colon, password = (
            base64.b64decode(token, validate=True).decode("utf-8").partition(":")
        )
    except (binascii.Error, UnicodeDecodeError) as error:
        raise UnreadableLogin from error
    if scheme.lower() != "basic" or not colon:
        raise UnreadableLogin
    return user, password
