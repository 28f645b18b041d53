"""Messages from another broker: a move that begins, how far it is, its stop.

Owns no state: the node has the job. What a job is made of is loaded with the first one.
"""

from __future__ import annotations

from dataclasses import dataclass

from burrowmq.broker.node.running import RunningNode
from burrowmq.management.answers.reply import ApiError, bad_request, not_found

QUEUES_MAX = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be moved, as it was asked for."""

    uri: str
    queues: tuple[tuple[str, str], ...]
    is_copy: bool
    is_quiet: bool
    trusts_times: bool
    rate: float


def start(node: RunningNode, asked: Asked) -> dict[str, object]:
    """Begin a move, or go on with one. Raises: ApiError 400, 409 while there is one at work."""
    from burrowmq.broker.imports.job import (  # noqa: PLC0415 - only where an import is asked for
        Job,
        Wish,
        World,
        document,
    )
    from burrowmq.broker.link.connect import Opener  # noqa: PLC0415 - as above
    from burrowmq.broker.link.uri import BadUri, parse  # noqa: PLC0415 - as above

    before = node.import_job
    if before is not None and before.is_running:
        raise ApiError(409, "conflict", "an import is under way: stop it first, or wait")
    if len(asked.queues) > QUEUES_MAX:
        raise bad_request(f"at most {QUEUES_MAX} queues can be imported at a time")
    try:
        target = parse(asked.uri, "/")
    except BadUri as error:
        raise bad_request(str(error)) from error
    if target.is_local:
        raise bad_request("the URI names no host")
    world = World(
        vhosts=node.vhosts,
        store=node.engine,
        commits=node.scheduler,
        refused_in=node.queue_faults.refused_in,
        alarm=lambda: node.alarms.reason if node.alarms.active else "",
        opener=Opener(open_session=node.open_session, max_message_size=1 << 30),
        data_dir=node.config.data_dir,
        now_ms=node.scheduler.wall_ms,
        run=int.from_bytes(node.entropy.token(7), "big") | 1 if before is None else before.run,
    )
    wish = Wish(
        target=target,
        queues=asked.queues,
        is_copy=asked.is_copy,
        is_quiet=asked.is_quiet,
        trusts_times=asked.trusts_times,
        rate=asked.rate,
    )
    job = Job(world, wish)
    try:
        job.start()
    except OSError as error:
        raise ApiError(500, "internal_server_error", f"no import here: {error}") from error
    node.import_job = job
    return document(job)


def look(node: RunningNode) -> dict[str, object]:
    """How far the last one is. Raises: ApiError 404."""
    if node.import_job is None:
        raise not_found()
    from burrowmq.broker.imports.job import document  # noqa: PLC0415 - as above

    return document(node.import_job)


async def stop(node: RunningNode) -> dict[str, object]:
    """End the one at work between two batches. Raises: ApiError 404."""
    if node.import_job is not None:
        await node.import_job.stop()
    return look(node)
