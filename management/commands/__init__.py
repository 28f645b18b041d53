"""The changes that the API can make to the node, a module for each of its parts.

The only place in management that calls the broker's methods that change something: a rename there is one edit here.
Owns no state; called by API handlers after they have checked the caller's tags. Refusals of the broker become HTTP
answers in `management.answers.refusals`. Changes of durable things are staged in the batch being collected;
`commit.durable` waits for it, before the reply.
"""

from __future__ import annotations

from burrowmq.management.commands import commit, node, parameters, sessions, topology, users, vhosts

__all__ = ["commit", "node", "parameters", "sessions", "topology", "users", "vhosts"]
