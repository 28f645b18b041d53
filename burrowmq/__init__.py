"""BurrowMQ: an AMQP 0-9-1 broker that behaves as RabbitMQ 3.13 does with classic queues.

Everything of the server is imported below this name, so that an installation never stands in the way of somebody's own
`config` or `storage`. In a checkout the folders stand at the top and are linked here (ADR 16).

Owns no state, and imports nothing: `burrowctl` starts in the time that it takes to load this line and itself.
`burrowmq.Broker`, the broker for a test suite, is loaded when somebody asks for it.
"""

from __future__ import annotations

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name in ("Broker", "BrokerError"):
        from importlib import import_module  # noqa: PLC0415 - see above

        return getattr(import_module("burrowmq.embedded"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
