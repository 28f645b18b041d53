"""Frameworks and clients of Node, by drivers of ours: what npm hands out has no tests in it.

State: none; each works in the folder of the place it is given. Callers: `client_suites`.
Versions are pinned; what each came to on RabbitMQ, and our differences, are in expected.toml.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable

from .place import DRIVERS, Count, Place, count_lines

NEST = (
    *("@nestjs/common@11.1.21", "@nestjs/core@11.1.21", "@nestjs/microservices@11.1.21"),
    *("@golevelup/nestjs-rabbitmq@9.0.2", "amqplib@0.10.9", "amqp-connection-manager@5.0.0"),
    *("rxjs@7.8.2", "reflect-metadata@0.2.2"),
)
CLIENTS = (
    *("amqplib@0.10.9", "amqp-connection-manager@5.0.0", "rabbitmq-client@5.0.8"),
    *("rascal@21.0.1", "@cloudamqp/amqp-client@4.1.1", "foo-foo-mq@8.0.1", "moleculer@0.14.35"),
)


def _driven(place: Place, driver: str, packages: tuple[str, ...]) -> Count:
    place.run("npm", "init", "-y", timeout_s=120)
    quiet = ("--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--legacy-peer-deps")
    place.run("npm", "install", *quiet, *packages, timeout_s=1200)
    for name in (driver, "node_checks.cjs"):
        shutil.copy(DRIVERS / name, place.folder)
    places = {"BROKER_URL": place.url, "BROKER_API": place.api}
    return count_lines(place.run("node", driver, timeout_s=1800, **places))


def nest(place: Place) -> Count:
    """NestJS' microservices over RabbitMQ, and @golevelup/nestjs-rabbitmq."""
    return _driven(place, "nest_paths.cjs", NEST)


def node_clients(place: Place) -> Count:
    """amqp-connection-manager, rabbitmq-client, rascal, @cloudamqp/amqp-client, foo-foo-mq, moleculer."""
    return _driven(place, "node_clients.cjs", CLIENTS)


# Each with the programs that it needs.
NODE: dict[str, tuple[Callable[[Place], Count], tuple[str, ...]]] = {
    "nest": (nest, ("npm", "node")),
    "node-clients": (node_clients, ("npm", "node")),
}
