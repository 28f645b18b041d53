"""What clients do with messages: publish, consume, fetch, settle, and go away.

Each operation draws what it does from the run's generator, and does nothing where it cannot be done just now. State: none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tests.simulation.machine.clients import CONFIRMING, REST, TRANSACTING, SimClient
from tests.simulation.machine.model import DEAD, Publication

if TYPE_CHECKING:
    from tests.simulation.machine.run import Run

SIZES = (8, 20, 60, 130, 400, 900)
SMALL_SIZES = SIZES[:3]


def publish(run: Run) -> None:
    """A few messages, to one queue or to all."""
    client = run.client()
    if client.is_paused or client.is_busy(CONFIRMING):
        return
    rng = run.rng
    names = [
        home.name for home in run.model.current.values() if home.is_at_hand and home.name != DEAD
    ]
    if not names:
        return
    name = rng.choice((*names, "fan"))
    channel = CONFIRMING
    if run.plan.silence and rng.random() < run.plan.silence and not client.is_busy(REST):
        channel = REST
    for _ in range(rng.choice((1, 1, 3, 8, 20))):
        client.publish(message(run, client), name, channel)


def trickle(run: Run) -> None:
    """A publisher waits for each confirm: small messages to one queue, with a commit each."""
    client = run.client()
    names = [
        home.name
        for home in run.model.current.values()
        if home.is_at_hand and home.is_durable and home.version == 2 and home.name != DEAD
    ]
    if not names:
        return
    name = run.rng.choice(names)
    for _ in range(run.rng.choice((5, 12, 30))):
        if client.is_lost or client.is_paused or client.is_busy(CONFIRMING):
            return
        client.publish(message(run, client, SMALL_SIZES), name, CONFIRMING)
        run.move(60)


def transact(run: Run) -> None:
    """Publish in a transaction, and end it."""
    client = run.client()
    if client.is_paused or client.is_busy(TRANSACTING):
        return
    names = [
        home.name for home in run.model.current.values() if home.is_at_hand and home.name != DEAD
    ]
    if names:
        for _ in range(run.rng.choice((1, 2, 5))):
            client.publish(message(run, client), run.rng.choice((*names, "fan")), TRANSACTING)
        if run.rng.random() < 0.75:
            client.commit()
        else:
            client.roll_back()


def consume(run: Run) -> None:
    """Another consumer."""
    client, home = run.client(), run.some_home()
    if home is not None and not client.is_busy(CONFIRMING) and len(client.consumers) < 3:
        client.consume(home, run.rng.choice((0, 1, 5, 20)))


def cancel(run: Run) -> None:
    """A consumer less."""
    client = run.client()
    if client.consumers and not client.is_busy(CONFIRMING):
        client.cancel(run.rng.choice(list(client.consumers)))


def get(run: Run) -> None:
    """One message."""
    client, home = run.client(), run.some_home()
    if home is not None and not client.is_busy(REST):
        client.get(home, no_ack=run.rng.random() < 0.3)


def settle(run: Run) -> None:
    """Ack, requeue, reject some deliveries."""
    client = run.client()
    run.pump_one(client)
    if client.is_lost or client.is_paused or client.is_busy(CONFIRMING) or client.is_busy(REST):
        return
    for _ in range(run.rng.choice((1, 2, 6, 15))):
        if client.deliveries:
            how = run.rng.choices(("ack", "multiple", "requeue", "reject"), (8, 2, 2, 3))[0]
            client.settle(run.rng.choice(list(client.deliveries)), how)


def inherit(run: Run) -> None:
    """What a client has of a queue becomes dead letters in one read, with which the queue may go."""
    rng, client = run.rng, run.client()
    run.pump()
    held = [its.home for its in client.deliveries.values() if its.home.has_dead_letters]
    if not held:
        _fetch_some(run, client)
        held = [its.home for its in client.deliveries.values() if its.home.has_dead_letters]
    if not held or client.is_lost or client.is_paused:
        return
    if client.is_busy(CONFIRMING) or client.is_busy(REST):
        return
    home = rng.choice(held)
    if rng.random() < 0.5:
        run.do("crash")
    for key in [key for key, its in client.deliveries.items() if its.home is home]:
        client.settle(key, "reject")
    if home.is_stable and rng.random() < 0.6:
        run.result.operations["estate"] += 1
        run.end_of(home)
        client.send(client.delete(home))


def lose(run: Run) -> None:
    """A client's socket breaks."""
    if run.clients:
        client = run.rng.choice(run.clients)
        run.pump_one(client)
        if not client.is_lost:
            run.lose(client)


def _fetch_some(run: Run, client: SimClient) -> None:
    """A client gets messages of a queue that has dead letters."""
    homes = [home for home in run.model.current.values() if home.has_dead_letters]
    homes = [home for home in homes if home.is_at_hand]
    if homes and not client.is_busy(CONFIRMING) and len(client.consumers) < 3:
        client.consume(run.rng.choice(homes), 5)
        run.move(40)


def message(run: Run, client: SimClient, sizes: Sequence[int] = SIZES) -> Publication:
    """Another message."""
    rng = run.rng
    run.number += 1
    size = rng.choice(sizes)
    body = (b"%08d" % run.number * (size // 8 + 1))[:size]
    deadline = None
    if rng.random() < 0.06:
        deadline = run.model.now_ms + rng.choice((20, 300, 4000))
    publication = Publication(
        run.number,
        body,
        rng.random() < 0.85,
        client.number,
        rng.choice((0, 0, 1, 2, 5)),
        deadline,
    )
    run.model.publications[run.number] = publication
    return publication
