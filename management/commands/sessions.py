"""Connections that an operator finds and closes.

Owns no state.
"""

from __future__ import annotations

from burrowmq.broker import inspect
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.session.session import Session
from burrowmq.management.answers.turns import pieces

CLOSED_PER_TURN = 50
"""With what they have: unacked messages go back, exclusive queues go."""


def sessions_named(node: RunningNode, name: str) -> list[Session]:
    """The sessions with a connection name (one, unless addresses are reused)."""
    return [session for session in node.sessions if session.name == name]


def sessions_with_pid(node: RunningNode, pid: str) -> list[Session]:
    """The session behind a pid that a list showed."""
    return [session for session in node.sessions if inspect.pid(node, session) == pid]


async def close_sessions(sessions: list[Session], reason: str) -> int:
    """Close connections as an operator would, some in each turn: 320 CONNECTION_FORCED with just the reason."""
    async for some in pieces(sessions, CLOSED_PER_TURN):
        for session in some:
            session.force_close(reason)
    return len(sessions)
