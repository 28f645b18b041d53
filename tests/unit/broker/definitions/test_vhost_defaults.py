"""What new virtual hosts begin with."""

from __future__ import annotations

import pytest

from burrowmq.broker.definitions.vhost_defaults import DefaultUser, VhostDefaults
from burrowmq.broker.rules.auth import Permission
from burrowmq.broker.rules.parameter_rules import ValidationFailed
from burrowmq.broker.vhost.vhost import Vhost
from tests.support.bench.broker import BrokerBench

MAY = Permission(configure="", write="^w", read="^r")


def user(name: str, password: str | None = "pw") -> DefaultUser:
    return DefaultUser(name=name, password=password, tags=("monitoring",), permission=MAY)


def applied(defaults: VhostDefaults, name: str = "team-a") -> Vhost:
    """A virtual host after the defaults were applied, on a node without users."""
    bench = BrokerBench(rows=())
    vhost = bench.create_vhost(name)
    defaults.apply(vhost, bench.auth)
    return vhost


def test_the_first_limits_that_match_count() -> None:
    defaults = VhostDefaults(
        limits=[
            ("^other", {"max-queues": 1}),
            ("^team", {"max-queues": 2, "max-connections": 3}),
            (".*", {"max-queues": 4}),
        ]
    )
    assert applied(defaults).limits == {"max-queues": 2, "max-connections": 3}
    assert applied(defaults, "x").limits == {"max-queues": 4}


def test_all_policies_that_match_are_set_and_last() -> None:
    document = {"pattern": "^tmp", "definition": {"expires": 1000}}
    vhost = applied(
        VhostDefaults(
            policies=[("^team", "one", document), ("^x", "two", document), ("", "3", document)]
        )
    )
    assert sorted(vhost.policies.operator_policies) == ["3", "one"]
    found = vhost.policies.operator_policies["one"]
    assert (found.pattern, found.definition, found.priority) == ("^tmp", {"expires": 1000}, 0)


def test_users_are_made_once_and_given_permissions_in_each() -> None:
    defaults = VhostDefaults(
        users=[("^team", user("app")), ("^x", user("none")), ("", user("bare", None))]
    )
    bench = BrokerBench(rows=())
    auth = bench.auth
    defaults.apply(bench.create_vhost("team-a"), auth)
    known = auth.users["app"]
    auth.set_tags("app", ("changed",))
    defaults.apply(bench.create_vhost("team-b"), auth)
    assert sorted(auth.users) == ["app", "bare"]
    assert auth.users["app"].password_hash == known.password_hash
    assert auth.users["app"].tags == ("changed",), "one that is there stays as it is"
    assert auth.users["bare"].password_hash == ""
    assert {each: auth.permissions[each] for each in (("team-a", "app"), ("team-b", "app"))} == {
        ("team-a", "app"): MAY,
        ("team-b", "app"): MAY,
    }


def test_a_policy_that_no_vhost_could_take_is_refused_at_once() -> None:
    with pytest.raises(ValidationFailed):
        VhostDefaults(policies=[("", "p", {"pattern": "x", "definition": {"foo": 1}})])
