"""Suites of Go's clients, as their modules bring them.

State: none; each works in the folder of the place it is given. Callers: `client_suites`.
Versions are pinned; what each came to on RabbitMQ, and our differences, are in expected.toml.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from .place import NOT_DOWNLOADED, Count, Place, count_go


def _go_test(place: Place, root: Path, *arguments: str, **env: str) -> Count:
    command = ("go", "test", "-vet=off", "-v", "-count=1", "-timeout", "1500s", *arguments)
    return count_go(place.run(*command, cwd=root, timeout_s=2400, **env))


def streadway(place: Place) -> Count:
    """streadway/amqp, the client that amqp091-go comes from; left out: TLS, and 65,000 channels opened one by one."""
    root = place.go_source("github.com/streadway/amqp", "v1.1.0")
    if root is None:
        return NOT_DOWNLOADED
    left_out = ("-skip", "TLS|ShouldNotPanicIssue136")
    return _go_test(place, root, "-tags", "integration", *left_out, ".", AMQP_URL=place.url)


def go_rabbitmq(place: Place) -> Count:
    """wagslane/go-rabbitmq: its tests start a broker with docker, which is told that one is there already."""
    root = place.go_source("github.com/wagslane/go-rabbitmq", "v0.16.1")
    if root is None:
        return NOT_DOWNLOADED
    cases = root / "integration_test.go"
    cases.write_text(cases.read_text().replace("localhost:5672", f"{place.host}:{place.port}"))
    docker = place.folder / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text("#!/bin/sh\necho there\n")
    docker.chmod(0o755)
    path = f"{docker.parent}:{os.environ['PATH']}"
    left_out = "TestConnCloseDuringReconnectStaysClosed"  # it stops the broker
    return _go_test(
        place, root, "-skip", left_out, ".", PATH=path, ENABLE_DOCKER_INTEGRATION_TESTS="TRUE"
    )


# Each with the programs that it needs.
GO: dict[str, tuple[Callable[[Place], Count], tuple[str, ...]]] = {
    "streadway": (streadway, ("go",)),
    "go-rabbitmq": (go_rabbitmq, ("go",)),
}
