"""A broker inside somebody's program: `burrowmq.Broker`, and fixtures of pytest that bring one.

`broker` and `served` are what the caller sees; `in_thread` and `in_process` are where a node may run, `hosted_node` is
the node, `commands` what it is asked for there; `vhost` and `plugin` are for tests. Nothing of the server imports this,
and nothing is loaded with it: pytest imports `plugin` in every project in which BurrowMQ is installed.
"""

from __future__ import annotations

from importlib import import_module

_HOMES = {
    "Broker": "broker",
    "BrokerError": "errors",
    "SeenMessage": "vhost",
    "VirtualHost": "vhost",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"burrowmq.embedded.{_HOMES[name]}"), name)
