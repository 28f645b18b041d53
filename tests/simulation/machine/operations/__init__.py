"""The operations of a plan, by name; `draw` says how often each is drawn, `run` takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulation.machine.operations import faults, lives, messages, queues, vhosts

if TYPE_CHECKING:
    from tests.simulation.machine.run import Run

OPERATIONS: dict[str, Callable[[Run], None]] = {
    "publish": messages.publish,
    "trickle": messages.trickle,
    "transact": messages.transact,
    "consume": messages.consume,
    "cancel": messages.cancel,
    "get": messages.get,
    "settle": messages.settle,
    "inherit": messages.inherit,
    "lose": messages.lose,
    "declare": queues.declare,
    "delete": queues.delete,
    "redeclare": queues.redeclare,
    "renew": queues.renew,
    "purge": queues.purge,
    "policy": queues.policy,
    "vhost": vhosts.vhost,
    "fault": faults.fault,
    "fill": faults.fill,
    "heal": faults.heal,
    "crash": faults.crash,
    "strike": faults.strike,
    "owe": faults.owe,
    "cramp": faults.cramp,
    "convert": faults.convert,
    "doubt": faults.doubt,
    "spoil": faults.spoil,
    "release": faults.release,
    "wait": lives.wait,
    "idle": lives.idle,
    "look": lives.look,
    "restart": lives.restart,
    "resegment": lives.resegment,
}
