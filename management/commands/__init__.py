"""The changes that the API can make to the node, a module for each of its parts.

Besides `management.messages`, the only place in management that calls methods of the broker that change something: when
one of them is renamed, one line changes here.
Owns no state; called by API handlers after they have checked the caller's tags. Refusals of the broker become HTTP
answers in `management.answers.refusals`. Changes of durable things are staged in the commit being collected;
`commit.durable` waits for it, before the reply.
"""

from __future__ import annotations

from burrowmq.management.commands import (
    commit,
    imports,
    leaders,
    members,
    migrations,
    node,
    parameters,
    quarantine,
    sessions,
    topology,
    users,
    vhosts,
)

__all__ = [
    "commit",
    "imports",
    "leaders",
    "members",
    "migrations",
    "node",
    "parameters",
    "quarantine",
    "sessions",
    "topology",
    "users",
    "vhosts",
]
