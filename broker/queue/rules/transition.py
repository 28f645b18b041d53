"""New settings on a queue that has messages: what a change of policy does to what is there.

Owns no state; called by the vhost for each queue after `Settings` were computed anew, changed or not. The order
is RabbitMQ's: limits come into force before the overflow behaviour, so a policy that brings `max-length` and
`reject-publish` together still drops the excess from the head, once. Then the mode: to lazy, everything in RAM goes
to disk within this turn, and publishers wait for as long as that takes to be written (the store's backlog holds
them); to default, one start batch is loaded. What was handed out stays in RAM until it is settled. A changed version is
handed to the store, which converts the files while the queue goes on.

Source: rabbit_amqqueue_process:process_args_policy; the classic lazy queue guide.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from burrowmq.broker.queue.queue import START_BATCH_BYTES, Queue

if TYPE_CHECKING:
    from burrowmq.broker.queue.rules.settings import Settings


def put_in_force(queue: Queue, settings: Settings) -> None:
    """Apply new settings to a queue, its content included."""
    before = queue.settings
    if settings == before:
        # Equal is not the same: that ends what still waits for settings that drop the excess (`_stop_dropping`).
        queue.settings = settings
        return
    if before.overflow == "drop-head" != settings.overflow:
        dropping = replace(settings, overflow="drop-head")
        queue.apply_settings(dropping)
        _stop_dropping(queue, dropping, settings)
    else:
        queue.apply_settings(settings)
    if before.mode != settings.mode:
        if settings.mode == "lazy":
            queue.page_out()
        else:
            queue.load_start_batch(START_BATCH_BYTES)
    if before.version != settings.version:
        queue.convert(settings.version)


def _stop_dropping(queue: Queue, dropping: Settings, settings: Settings) -> None:
    """Reject from now on, or as soon as the excess that has to be read from disk is gone."""
    if queue.is_deleted or queue.settings is not dropping:
        return  # newer settings have come meanwhile
    if _is_over(queue) and any(level.is_loading for level in queue.levels):
        queue.after_pump(lambda: _stop_dropping(queue, dropping, settings))
    else:
        queue.apply_settings(settings)


def _is_over(queue: Queue) -> bool:
    settings = queue.settings
    most, most_bytes = settings.max_length, settings.max_length_bytes
    return (most is not None and queue.ready_count > most) or (
        most_bytes is not None and queue.ready_bytes > most_bytes
    )
