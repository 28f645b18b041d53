"""Keys that say what new virtual hosts begin with."""

from __future__ import annotations

import pytest

from burrowmq.config.errors import ConfigError
from burrowmq.config.load import load
from burrowmq.config.schema import NodeConfig
from burrowmq.config.seeding import LimitsDefault, PolicyDefault, SeedingConfig, UserDefault


def loaded(*lines: tuple[str, str]) -> NodeConfig:
    found = load(None, {}, lines, None)
    assert found.warnings == ()
    return found.config


def test_nothing_is_said_by_default() -> None:
    assert loaded().seeding == SeedingConfig()


def test_keys_of_one_name_belong_together() -> None:
    config = loaded(
        ("default_users.app.vhost_pattern", "^team-"),
        ("default_users.app.password", "secret"),
        ("default_users.app.read", "^r"),
        ("default_users.app.tags", "monitoring, policymaker"),
        ("default_users.plain.configure", ""),
        ("default_policies.operator.short.vhost_pattern", "^team-"),
        ("default_policies.operator.short.queue_pattern", "^tmp"),
        ("default_policies.operator.short.expires", "1h30m"),
        ("default_policies.operator.short.max_length_bytes", "1MB"),
        ("default_limits.vhosts.1.pattern", "^team-"),
        ("default_limits.vhosts.1.max_queues", "10"),
        ("default_limits.vhosts.2.max_connections", "0"),
    )
    assert config.seeding.users == (
        UserDefault(
            name="app",
            vhost_pattern="^team-",
            password="secret",
            read="^r",
            tags=("monitoring", "policymaker"),
        ),
        UserDefault(name="plain", configure=""),
    )
    assert config.seeding.operator_policies == (
        PolicyDefault(
            name="short",
            vhost_pattern="^team-",
            queue_pattern="^tmp",
            definition={"expires": 5_400_000, "max-length-bytes": 1 << 20},
        ),
    )
    assert config.seeding.limits == (
        LimitsDefault(pattern="^team-", limits={"max-queues": 10}),
        LimitsDefault(limits={"max-connections": 0}),
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("default_users.app.vhost_pattern", "("),
        ("default_users.app.nonsense", "x"),
        ("default_policies.operator.p.max_length", "0"),
        ("default_policies.operator.p.expires", "soon"),
        ("default_policies.p.max_length", "1"),
        ("default_limits.vhosts.1.max_queues", "-1"),
    ],
)
def test_what_cannot_be_is_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        loaded((key, value))


def test_what_is_about_mirrors_is_named_in_a_warning() -> None:
    key = "default_policies.operator.p.classic_queues.ha_mode"
    assert len(load(None, {}, [(key, "all")], None).warnings) == 1
