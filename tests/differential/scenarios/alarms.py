"""The memory alarm: who is blocked, who is told."""

from __future__ import annotations

import time
from typing import Any

from tests.differential.broker import Broker
from tests.differential.peer import wait_for

Record = Any


def _watermark(broker: Broker, value: str) -> dict[str, Any]:
    return broker.ctl("set_vm_memory_high_watermark", value)


def _alarm(broker: Broker, is_on: bool) -> Any:
    return wait_for(
        lambda: broker.http("GET", "health/checks/alarms")[0] == (503 if is_on else 200),
        lambda found: found,
        15,
    )


def publishers_are_blocked_and_others_go_on(broker: Broker) -> Record:
    publisher, consumer = broker.peer(), broker.peer()
    consumer.queue("q")
    consumer.consume("q", "t", no_ack=True)
    broker.also(_watermark, broker, "0.4")
    _watermark(broker, "0.00001")
    on = _alarm(broker, True)
    quiet = publisher.rest()
    publisher.publish("", "q", b"")
    told = publisher.take(1)
    delivered = consumer.bodies(1)
    publisher.publish("", "q", b"2")
    held = consumer.rest(0.5)
    late = broker.peer()
    opened = [late.declare("q2"), late.get("q2")]
    _watermark(broker, "0.4")
    off = _alarm(broker, False)
    freed = publisher.take(1)
    return [on, quiet, told, delivered, held, opened, off, freed, consumer.bodies(1)]


def clients_without_the_capability_are_not_told(broker: Broker) -> Record:
    publisher, consumer = broker.peer(capabilities={}), broker.peer()
    consumer.queue("q")
    broker.also(_watermark, broker, "0.4")
    _watermark(broker, "0.00001")
    on = _alarm(broker, True)
    publisher.publish("", "q", b"")
    first = consumer.wait_ready("q", 1)
    publisher.publish("", "q", b"2")
    time.sleep(0.3)
    held = consumer.ready("q")
    silent = publisher.rest()
    _watermark(broker, "0.4")
    return [on, first, held, silent, consumer.wait_ready("q", 2, 15)]


def the_publish_that_blocks_has_a_body(broker: Broker) -> Record:
    """RabbitMQ stops reading between its header and its body; here it is taken whole."""
    publisher, other = broker.peer(), broker.peer()
    other.queue("q")
    broker.also(_watermark, broker, "0.4")
    _watermark(broker, "0.00001")
    on = _alarm(broker, True)
    publisher.publish("", "q", b"1")
    told = publisher.take(1)
    held = other.wait_ready("q", 1, 0.5)
    _watermark(broker, "0.4")
    return [on, told, held, other.wait_ready("q", 1, 15)]


def alarms_as_commands_show_them(broker: Broker) -> Record:
    broker.also(_watermark, broker, "0.4")
    first = broker.ctl("set_vm_memory_high_watermark", "nonsense")
    _watermark(broker, "0.00001")
    on = _alarm(broker, True)
    found = broker.http("GET", "health/checks/local-alarms")
    _watermark(broker, "0.4")
    return [first, on, found[0], _alarm(broker, False)]
