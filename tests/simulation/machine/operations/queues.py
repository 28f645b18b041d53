"""What clients do with queues: they come, go, are emptied, and policies for them change.

Each operation draws what it does from the run's generator, and does nothing where it cannot be done just now. State: none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burrowmq.broker.definitions.parameters import clear_policy, set_policy
from burrowmq.broker.rules.policy import Policy, PolicyValue
from tests.simulation.machine.clients import REST, TRANSACTING, SimClient
from tests.simulation.machine.model import DEAD, NAMES, Home

if TYPE_CHECKING:
    from tests.simulation.machine.run import Run


def declare(run: Run) -> None:
    """A queue that is not there."""
    client = run.client()
    missing = [name for name in (*NAMES, DEAD) if _is_free(run, name)]
    if missing and not client.is_busy(REST):
        client.send(client.declare(run.new_home(run.rng.choice(missing))))


def delete(run: Run) -> None:
    """A queue less."""
    client = run.client()
    home = _doomed(run, client)
    if home is not None:
        run.end_of(home)
        client.send(client.delete(home))


def redeclare(run: Run) -> None:
    """A queue is deleted and declared again in one read."""
    client = run.client()
    home = _doomed(run, client)
    if home is not None:
        run.end_of(home)
        home.is_replaced = True
        data = client.delete(home)
        client.send(data + client.declare(run.new_home(home.name)))


def renew(run: Run) -> None:
    """The same by two channels, so that both are in one commit: a channel waits for the answer to a deletion."""
    client = run.client()
    home = _doomed(run, client)
    if home is None or client.is_busy(TRANSACTING):
        return
    run.result.operations["pair"] += 1
    run.end_of(home)
    home.is_replaced = True
    if run.rng.random() < 0.5:
        run.do("crash")
    data = client.delete(home)
    client.send(data + client.declare(run.new_home(home.name), TRANSACTING))


def purge(run: Run) -> None:
    """A queue is emptied."""
    client, home = run.client(), run.some_home()
    if home is not None and not client.is_busy(REST) and not client.is_paused:
        run.pump()
        if not client.is_lost:
            is_got = any(
                each.is_busy(REST) or home in each.consumers.values() for each in run.clients
            )
            client.purge(home, is_got=is_got)


def policy(run: Run) -> None:
    """A policy comes, changes or goes: versions, modes."""
    node = run.machine.node
    assert node is not None
    vhost = node.vhosts["/"]
    rng = run.rng
    name = rng.choice(("p", "r"))
    if rng.random() < 0.3:
        clear_policy(vhost, name)
    else:
        definition: dict[str, PolicyValue] = {}
        if rng.random() < 0.8:
            definition["queue-version"] = rng.choice((1, 2))
        if rng.random() < 0.5 or not definition:
            definition["queue-mode"] = rng.choice(("lazy", "default"))
        pattern = rng.choice((".*", "^a", "^[bc]"))
        policy = Policy(
            name=name,
            pattern=pattern,
            definition=definition,
            apply_to="queues",
            priority=rng.randint(0, 3),
        )
        set_policy(vhost, policy)
    node.scheduler.touch()


def _is_free(run: Run, name: str) -> bool:
    home = run.model.current.get(name)
    return home is None or home.is_deleted


def _doomed(run: Run, client: SimClient) -> Home | None:
    homes = [home for home in run.model.current.values() if home.is_at_hand]
    if not homes or client.is_busy(REST):
        return None
    run.pump()
    home = run.rng.choice(homes)
    if home.name == DEAD and run.rng.random() < 0.7:
        return None
    if any(each.is_late_for(home) for each in run.clients if each is not client):
        return None
    return home if home.is_stable and not client.is_lost else None
