"""The configuration of an embedded broker: a server's, but for what has no place in somebody else's program.

No file and no environment variable is read, so that the machine's own RabbitMQ settings stay out of a test suite. No
state. Raises: BrokerError with every key that is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from burrowmq.broker.rules.pattern import compile_pattern
from burrowmq.config.errors import ConfigError
from burrowmq.config.given import Loaded, given
from burrowmq.config.units import Endpoint
from burrowmq.embedded.errors import BrokerError
from burrowmq.records import NamedTuple

HOST = "127.0.0.1"
GIVEN = "config"
"""The argument that keys come in: there is no command line."""
ABSENT = ("prometheus.", "log.")
"""Keys of what is not there: nothing is accepted and ignored."""
OWN = {
    "log.console": "false",
    "log.file": "false",
    # The host's memory and disk are its own: a small tmpfs is a fine place for a suite's messages.
    "start_check": "warn",
    "disk_free_limit.absolute": "1MB",
    "busy_wait": "off",
    "store_scrub_period": "0",
}


PlainMessage: TypeAlias = tuple[bytes, bytes, int, int, int, int]
"""Address, content, size, flags, channel, frame_max: see `snapshots.plain`."""
Recorded: TypeAlias = Mapping[str, Sequence[PlainMessage]]
"""What was published, by virtual host."""


Ports: TypeAlias = tuple[int, int]
"""That of AMQP, and that of the HTTP API, 0 where there is none."""


class Settings(NamedTuple):
    """What one run is asked for; `port` of 0: one that is free."""

    data_dir: str
    port: int
    user: str
    password: str
    checked: Loaded
    """The configuration, whatever the port."""
    recorded: Recorded
    """The virtual hosts in which publishes are recorded, with those of earlier runs."""
    has_api: bool
    """Whether there are the HTTP API and the UI."""
    api_port: int = 0
    is_own_directory: bool = False
    """Whether the directory goes with the broker."""
    now_ms: int | None = None
    """What time it is where the clock is moved by hand, None where it is the machine's."""

    @property
    def vhost(self) -> str:
        """The virtual host that an empty directory starts with."""
        return self.checked.config.first_user.vhost

    def loaded(self) -> Loaded:
        """The configuration, with the port."""
        listeners = (Endpoint(HOST, self.port),)
        return replace(self.checked, config=replace(self.checked.config, listeners=listeners))


def settings(
    data_dir: str | os.PathLike[str], port: int, keys: Mapping[str, object], *, has_api: bool
) -> Settings:
    """Settings with a user of their own. Raises BrokerError, also for what is not of these types."""
    if type(port) is not int or not 0 <= port <= 65535:
        raise BrokerError(f"port is {port!r}: give a number from 0 (any free port) to 65535")
    if type(has_api) is not bool:
        raise BrokerError(f"management is {has_api!r}: give True or False")
    if not isinstance(keys, Mapping):
        raise BrokerError(f"{GIVEN} is {keys!r}: give keys with their values, {{'heartbeat': 10}}")
    for key in keys:
        if not isinstance(key, str):
            raise BrokerError(
                f"{GIVEN} has the key {key!r}: give names of keys, {{'heartbeat': 10}}"
            )
        if key.startswith("listeners.tcp"):
            raise BrokerError(f"{key}: an embedded broker has one listener; give its port as port=")
        if key == "data_dir":
            raise BrokerError(f"{key}: give its directory as data_dir=")
        if key.startswith("management."):
            raise BrokerError(
                f"{key}: an embedded broker has no HTTP API but with management=True, and that as it is installed"
            )
        if key.startswith(ABSENT):
            raise BrokerError(f"{key}: an embedded broker has no metrics and no log")
    texts = {key: _text(value) for key, value in keys.items()}
    user = texts.get("default_user", "embedded")
    password = texts.get("default_pass", os.urandom(16).hex())
    where = os.fspath(data_dir)
    own = OWN | {"default_user": user, "default_pass": password}
    try:
        checked = given([*(own | texts).items()], where, compile_pattern, source=GIVEN)
    except ConfigError as error:
        raise BrokerError("; ".join(str(each) for each in error.problems)) from error
    return Settings(where, port, user, password, checked, {}, has_api)


def _text(value: object) -> str:
    """As it would stand in rabbitmq.conf."""
    return str(value).lower() if isinstance(value, bool) else str(value)
