"""Moving the clock of a node whose deadlines go by hand: to each deadline in turn, as if time had passed.

Between two deadlines the broker does what it has to: dead letters reach their queues (and get deadlines of their own),
consumers are served, heads that lie on disk are read. So a message that goes through three queues in a minute does so
in one `advance(60)`, and at the times at which it would have. What a client does about it comes after.
Called on the loop, by whoever moves the clock; one move at a time. Owns no state.
"""

from __future__ import annotations

import asyncio

from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.turn.timeline import Timeline
from burrowmq.storage import real_time as time

SETTLE_S = 5.0
"""How long a disk that does not answer is waited for; the clock is moved all the same then."""
_PAUSE_S = 0.0005


async def advance(running: RunningNode, timeline: Timeline, delta_ms: int) -> None:
    """Let so many milliseconds pass, and do all that becomes due."""
    assert delta_ms >= 0, "the caller has looked"
    until_ms = timeline.now_ms + delta_ms
    await settle(running)
    running.ack_timeouts.look_at_all()  # what was delivered by now is known to be
    while (due_ms := _next_ms(running, timeline)) is not None and due_ms <= until_ms:
        timeline.now_ms = due_ms
        timeline.run_due()
        running.ack_timeouts.look_at_all()
        await _end_turns(running)
    timeline.now_ms = until_ms
    running.ack_timeouts.look_at_all()
    await settle(running)


async def settle(running: RunningNode) -> None:
    """Wait until the broker has nothing left to do, commits included."""
    given_up = time.monotonic() + SETTLE_S
    running.scheduler.touch()  # what is staged is handed over, whoever staged it
    while time.monotonic() < given_up:
        await _end_turns(running)
        if running.engine.is_idle() and running.scheduler.is_quiet:
            return
        await asyncio.sleep(_PAUSE_S)


async def _end_turns(running: RunningNode) -> None:
    """Wait until no turn is to come and no read of the store is on its way."""
    scheduler, given_up = running.scheduler, 0.0
    while True:
        while not scheduler.is_quiet:  # noqa: ASYNC110 - the end of a turn is the loop's next step
            await asyncio.sleep(0)
        if not running.engine.is_reading:
            return
        given_up = given_up or time.monotonic() + SETTLE_S
        if time.monotonic() > given_up:
            return
        await asyncio.sleep(_PAUSE_S)


def _next_ms(running: RunningNode, timeline: Timeline) -> int | None:
    found = (timeline.next_due_ms(), running.ack_timeouts.next_due_ms())
    return min((each for each in found if each is not None), default=None)
