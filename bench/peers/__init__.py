"""The brokers that are measured: each module starts and stops private nodes of one product on loopback.

`PEERS` maps the names of the command line to them. A peer that is not installed says so through `version() is None` and is
left out of the run. Called by `runner`.
"""

from bench.peers.base import Node, NodeFailed, Peer, Setting
from bench.peers.burrowmq import BurrowMQ
from bench.peers.lavinmq import LavinMQ
from bench.peers.rabbitmq import RabbitMQ

PEERS: dict[str, Peer] = {
    "burrowmq": BurrowMQ(is_interpreted=False, name="burrowmq"),
    "burrowmq-pure": BurrowMQ(is_interpreted=True, name="burrowmq-pure"),
    "rabbitmq": RabbitMQ(),
    "lavinmq": LavinMQ(),
}

__all__ = ["PEERS", "Node", "NodeFailed", "Peer", "Setting"]
