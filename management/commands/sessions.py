"""Connections that an operator finds and closes.

Owns no state.
"""

from __future__ import annotations

from burrowmq.broker import inspect
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.session.session import Session


def sessions_named(node: RunningNode, name: str) -> list[Session]:
    """The sessions with a connection name (one, unless addresses are reused)."""
    return [session for session in node.sessions if session.name == name]


def sessions_with_pid(node: RunningNode, pid: str) -> list[Session]:
    """The session behind a pid that a list showed."""
    return [session for session in node.sessions if inspect.pid(node, session) == pid]


def close_sessions(sessions: list[Session], reason: str) -> int:
    """Close connections as an operator would: 320 CONNECTION_FORCED with just the reason."""
    for session in sessions:
        session.force_close(reason)
    return len(sessions)
