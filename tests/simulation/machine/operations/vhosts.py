"""A virtual host beside the usual one: it is made, used, deleted with all that is in it, and made again at once.

Its queues are known as `w:a` and `w:b`; operations of others leave them alone. State: none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burrowmq.management.commands.vhosts import add_vhost, delete_vhost
from tests.simulation.machine.clients import CONFIRMING, REST, SimClient
from tests.simulation.machine.model import Home, keyed
from tests.simulation.machine.operations.messages import message

if TYPE_CHECKING:
    from tests.simulation.machine.run import Run

NAME = "w"
QUEUES = ("a", "b")


def vhost(run: Run) -> None:
    """It is made if it is not there, else something is published or fetched there, or it goes."""
    node, rng = run.machine.node, run.rng
    if node is None or node.failed.done():
        return
    if NAME not in node.vhosts:
        _make(run)
    elif rng.random() < 0.65:
        _use(run)
    else:
        if rng.random() < 0.4:
            run.do("crash")
        _delete(run)


def _make(run: Run) -> None:
    """It is made, with a queue or two, and somebody publishes there; what is sent is read in this turn."""
    node, rng = run.machine.node, run.rng
    assert node is not None
    for home in _homes(run):
        home.is_replaced = True  # it is going, perhaps with the same commit
    add_vhost(node, NAME, "guest")
    client = run.client_if_there(NAME)
    if client is None or run.machine.node is not node:
        return  # its store had failed, and another process has what there was
    homes: list[Home] = []
    for queue in rng.choice((QUEUES[:1], QUEUES)):
        home = run.new_home(keyed(NAME, queue))
        home.has_dead_letters = False  # there is no queue for them
        homes.append(home)
        client.send(client.declare(home))
    for home in homes:
        _publish(run, client, home)


def _use(run: Run) -> None:
    """Somebody publishes there, or fetches a few."""
    rng = run.rng
    clients = [client for client in run.clients if client.vhost == NAME]
    client = clients[0] if clients else run.client_if_there(NAME)
    homes = [home for home in _homes(run) if home.is_stable]
    if client is None or client.is_lost or not homes:
        return
    home = rng.choice(homes)
    if rng.random() < 0.5:
        _publish(run, client, home)
        return
    for _ in range(rng.choice((1, 3))):
        if client.is_lost or client.is_busy(REST) or client.is_paused:
            return
        client.get(home, no_ack=True)
        run.move(40)


def _delete(run: Run) -> None:
    """It goes, and in half of the cases the same commit has it made again."""
    node, rng = run.machine.node, run.rng
    assert node is not None
    homes = _homes(run)
    for home in homes:
        run.end_of(home)
        home.is_deleting = True
    for _ in delete_vhost(node, NAME):
        pass
    for client in [client for client in run.clients if client.vhost == NAME]:
        run.lose(client)
    if rng.random() < 0.5:
        _make(run)
    if rng.random() < 0.5:
        run.machine.settle()
        is_same = run.machine.node is node  # and was not started again, since its store failed
        if is_same and run.machine.is_at_rest and node.engine._collecting.is_empty():
            run.model.deleted(homes)


def _homes(run: Run) -> list[Home]:
    return [home for home in run.model.homes if home.vhost == NAME and not home.is_deleted]


def _publish(run: Run, client: SimClient, home: Home) -> None:
    if client.is_lost or client.is_paused or client.is_busy(CONFIRMING):
        return
    for _ in range(run.rng.choice((1, 3, 8))):
        client.publish(message(run, client), home.name, CONFIRMING)
