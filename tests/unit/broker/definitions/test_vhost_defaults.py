"""What new virtual hosts begin with."""

from __future__ import annotations

import pytest

from burrowmq.broker.definitions.vhost_defaults import DefaultUser, VhostDefaults
from burrowmq.broker.rules.auth import Auth, Permission
from burrowmq.broker.rules.parameter_rules import ValidationFailed
from tests.support.topology import KeptEngine, make_vhost
from tests.unit.broker.definitions.test_document import CountingEntropy

MAY = Permission(configure="", write="^w", read="^r")


def user(name: str, password: str | None = "pw") -> DefaultUser:
    return DefaultUser(name=name, password=password, tags=("monitoring",), permission=MAY)


def applied(defaults: VhostDefaults, name: str = "team-a") -> tuple[object, Auth]:
    engine = KeptEngine()
    vhost = make_vhost(name, engine)
    auth = Auth(engine.definitions, CountingEntropy())
    defaults.apply(vhost, auth)
    return vhost, auth


def test_the_first_limits_that_match_count() -> None:
    defaults = VhostDefaults(
        limits=[
            ("^other", {"max-queues": 1}),
            ("^team", {"max-queues": 2, "max-connections": 3}),
            (".*", {"max-queues": 4}),
        ]
    )
    assert applied(defaults)[0].limits == {"max-queues": 2, "max-connections": 3}
    assert applied(defaults, "x")[0].limits == {"max-queues": 4}


def test_all_policies_that_match_are_set_and_last() -> None:
    document = {"pattern": "^tmp", "definition": {"expires": 1000}}
    vhost, _ = applied(
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
    engine = KeptEngine()
    auth = Auth(engine.definitions, CountingEntropy())
    defaults.apply(make_vhost("team-a", engine), auth)
    known = auth.users["app"]
    auth.set_tags("app", ("changed",))
    defaults.apply(make_vhost("team-b", engine), auth)
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
