"""A broker inside somebody's program: `burrowmq.Broker`.

`broker` is what the caller sees; `in_thread` and `in_process` are the two places where a node may run; `settings` says
what of the configuration is different from a server's, `directory` where its files lie. Nothing of the server imports
this, and nothing of it is loaded before somebody asks for `burrowmq.Broker`.
"""

from __future__ import annotations

from burrowmq.embedded.broker import Broker
from burrowmq.embedded.errors import BrokerError

__all__ = ["Broker", "BrokerError"]
