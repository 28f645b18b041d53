"""burrowmq.broker.vhost.queue_settings: arguments met with policies, and what stays of earlier ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from burrowmq.broker.rules.policy import Policy, PolicySet
from burrowmq.broker.vhost import queue_settings
from burrowmq.broker.vhost.queue_settings import QueueSettings
from tests.support.bench.broker import BrokerBench


def with_policy(**definition: str | int) -> PolicySet:
    policies = PolicySet()
    keys = {name.replace("_", "-"): value for name, value in definition.items()}
    policies.policies["p"] = Policy(name="p", pattern="^q", definition=keys)
    policies.changed()
    return policies


def named(name: str) -> Any:
    return SimpleNamespace(name=name, arguments={})


def test_arguments_are_met_with_the_policy_of_the_name() -> None:
    settings = QueueSettings(with_policy(max_length=5, queue_mode="lazy"), 2)
    found = settings.of("q", {"x-max-length": 3})
    assert (found.max_length, found.mode, found.version) == (3, "lazy", 2)
    assert settings.of("other", {}).max_length is None


def test_equal_settings_are_one_object_and_few_are_kept(monkeypatch) -> None:
    monkeypatch.setattr(queue_settings, "KNOWN_MAX", 3)
    settings = QueueSettings(PolicySet(), 2)
    first = settings.of("a", {"x-max-length": 0})
    assert settings.of("b", {"x-max-length": 0}) is first
    for length in range(1, 4):
        settings.of("a", {"x-max-length": length})
    assert settings.of("a", {"x-max-length": 0}) == first


def test_a_queue_keeps_the_version_that_was_the_default_until_it_is_deleted() -> None:
    settings = QueueSettings(PolicySet(), 2)
    settings.remember_version("old", 1)
    settings.remember_version("new", None)
    settings.remember_version("same", 2)
    assert [settings.of(name, {}).version for name in ("old", "new", "same")] == [1, 2, 2]
    assert settings.of("old", {"x-queue-version": 2}).version == 2
    settings.forget(named("old"))
    settings.forget(named("new"))
    assert settings.of("old", {}).version == 2


def test_a_mode_that_no_policy_speaks_of_any_more_stays() -> None:
    queue = BrokerBench().queue(arguments={"x-queue-mode": "lazy"})
    queue.arguments = {}
    without = QueueSettings(PolicySet(), 2)
    assert without.of("q", {}).mode == "default"
    assert without.after_change(queue).mode == "lazy"
    assert without.after_change(queue) is without.after_change(queue)
    said = QueueSettings(with_policy(queue_mode="default"), 2)
    assert said.after_change(queue).mode == "default"
