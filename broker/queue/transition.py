"""New settings on a queue that has messages: what a change of policy does to what is there.

Owns no state; called by the vhost for each queue whose settings changed, after `Settings` were computed anew. The
order is RabbitMQ's: limits come into force before the overflow behaviour, so a policy that brings `max-length` and
`reject-publish` together still drops the excess from the head, once. Then the mode: to lazy, everything in RAM goes
to disk within this turn, and publishers wait for as long as that takes to be written (the store's backlog holds
them); to default, one start batch is loaded. What was handed out stays in RAM until it is settled.

Source: rabbit_amqqueue_process:process_args_policy; the classic lazy queue guide.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.queue.queue import Queue
    from broker.queue.settings import Settings


def put_in_force(queue: Queue, settings: Settings) -> None:
    """Apply new settings to a queue, its content included."""
    before = queue.settings
    if before.overflow == "drop-head" != settings.overflow:
        queue.apply_settings(replace(settings, overflow="drop-head"))
    queue.apply_settings(settings)
    if before.mode != settings.mode:
        if settings.mode == "lazy":
            queue.page_out()
        else:
            queue.load_start_batch(queue.context.options.start_batch_bytes)
