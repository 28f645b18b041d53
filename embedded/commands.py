"""What a running node is asked for by the caller's side, by name: the node may be in a thread, or another process.

Arguments and answers are therefore plain: numbers, texts, octets, and tuples, lists and dictionaries of these. Called
on the node's loop. Raises: BrokerError, whose text is all that comes back. Owns no state.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from burrowmq.broker.node.advance import advance as pass_time
from burrowmq.embedded.hosted_node import HostedNode


async def advance(node: HostedNode, delta_ms: int) -> int:
    """Move the clock, and do what becomes due; what time it is then."""
    await pass_time(node.running, node.timeline, delta_ms)
    return node.timeline.now_ms


Command = Callable[..., Coroutine[Any, Any, object]]
COMMANDS: dict[str, Command] = {each.__name__: each for each in (advance,)}
