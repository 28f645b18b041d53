"""burrowmq.broker.rules.auth: who logs in, who may do what, and what is kept."""

from __future__ import annotations

import pytest

from burrowmq.broker.definitions.restore import EVERYTHING
from burrowmq.broker.rules import auth as auth_module
from burrowmq.broker.rules.auth import (
    Auth,
    LoginRefused,
    Permission,
    TopicPermission,
    User,
)
from burrowmq.broker.rules.pattern import BadPattern
from burrowmq.protocol.errors import AccessRefused
from tests.support.bench.broker import BrokerBench


def test_a_password_logs_in() -> None:
    assert BrokerBench().auth.authenticate("guest", "guest", is_loopback=True).name == "guest"


@pytest.mark.parametrize(
    ("name", "password"), [("guest", "wrong"), ("guest", ""), ("nobody", "guest"), ("", "")]
)
def test_a_wrong_password_does_not(name: str, password: str) -> None:
    with pytest.raises(LoginRefused, match=f"^user '{name}' - invalid credentials$"):
        BrokerBench().auth.authenticate(name, password, is_loopback=True)


def test_guest_comes_from_this_machine_only() -> None:
    auth = BrokerBench().auth
    with pytest.raises(LoginRefused, match="user 'guest' can only connect via localhost"):
        auth.authenticate("guest", "guest", is_loopback=False)
    auth.set_password("bob", "secret")
    assert auth.authenticate("bob", "secret", is_loopback=False).name == "bob"


def test_the_repr_of_a_user_hides_the_hash() -> None:
    assert "hash" not in repr(User(name="u", password_hash="secret")).replace("hashing", "")


def with_permission(configure: str = "", write: str = "", read: str = "") -> tuple[Auth, User]:
    auth = BrokerBench().auth
    user = auth.set_password("bob", "x")
    auth.set_permission("/", "bob", Permission(configure=configure, write=write, read=read))
    return auth, user


def test_patterns_are_searched_anywhere_in_the_name() -> None:
    auth, user = with_permission(read="middle")
    auth.check(user, "/", "read", "queue", "the-middle-of")
    with pytest.raises(AccessRefused):
        auth.check(user, "/", "read", "queue", "other")


def test_the_empty_pattern_covers_nothing() -> None:
    auth, user = with_permission(configure="", write="^$")
    for access in ("configure", "write", "read"):
        with pytest.raises(AccessRefused):
            auth.check(user, "/", access, "queue", "q")


@pytest.mark.parametrize("access", ["configure", "write", "read"])
def test_the_texts_of_refusal(access: auth_module.Access) -> None:
    auth, user = with_permission()
    with pytest.raises(AccessRefused) as caught:
        auth.check(user, "/", access, "queue", "q")
    assert caught.value.text == f"{access} access to queue 'q' in vhost '/' refused for user 'bob'"


def test_the_default_exchange_goes_by_its_alias() -> None:
    auth, user = with_permission(write=r"^amq\.default$")
    auth.check(user, "/", "write", "exchange", "")
    auth.set_permission("/", "bob", Permission(configure="", write="x", read=""))
    with pytest.raises(AccessRefused) as caught:
        auth.check(user, "/", "write", "exchange", "")
    assert caught.value.text == (
        "write access to exchange 'amq.default' in vhost '/' refused for user 'bob'"
    )


def test_permissions_are_per_vhost_and_a_record_lets_in() -> None:
    auth, user = with_permission(read=".*")
    assert auth.may_enter(user, "/")
    assert not auth.may_enter(user, "other")
    assert not auth.may("bob", "other", "read", "q")
    auth.clear_permission("/", "bob")
    assert not auth.may_enter(user, "/")


def test_a_change_shows_at_once_and_is_numbered() -> None:
    auth, user = with_permission(read="^a")
    assert auth.may(user.name, "/", "read", "a")
    before = auth.generation
    auth.set_permission("/", "bob", Permission(configure="", write="", read="^b"))
    assert not auth.may(user.name, "/", "read", "a")
    assert auth.generation > before


def test_answers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth_module, "ANSWERS_MAX", 10)
    auth, user = with_permission(read="^a")
    for number in range(100):
        auth.may(user.name, "/", "read", f"a{number}")
    assert len(auth._answers) <= 10


def test_topic_permissions() -> None:
    auth, user = with_permission()
    auth.check_topic(user, "/", "write", "amq.topic", "anything")
    record = TopicPermission(write="^{username}-{vhost}\\.", read="^a$")
    auth.set_topic_permission("/", "bob", "amq.topic", record)
    auth.check_topic(user, "/", "write", "amq.topic", "bob-/.x")
    auth.check_topic(user, "/", "read", "amq.topic", "a")
    auth.check_topic(user, "/", "write", "other", "x")
    with pytest.raises(AccessRefused) as caught:
        auth.check_topic(user, "/", "write", "amq.topic", "eve.x")
    assert caught.value.text == (
        "write access to topic 'eve.x' in exchange 'amq.topic' in vhost '/' refused for user 'bob'"
    )
    auth.clear_topic_permissions("/", "bob", "amq.topic")
    auth.check_topic(user, "/", "write", "amq.topic", "eve.x")


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("u" * 900, r"^{username}\.(a+)+$"), ("-" * 250, "{username}" * 5)],
)
def test_an_expression_that_is_too_large_with_the_name_in_it_covers_nothing(
    name: str, pattern: str
) -> None:
    auth = BrokerBench().auth
    user = auth.set_password(name, "secret")
    auth.set_topic_permission("/", name, "amq.topic", TopicPermission(write=pattern, read=".*"))
    for _ in range(2):
        with pytest.raises(AccessRefused, match="regular expression is too large"):
            auth.check_topic(user, "/", "write", "amq.topic", "k")


def test_a_user_name_cannot_widen_a_topic_permission() -> None:
    auth = BrokerBench().auth
    user = auth.set_password(".*", "x")
    auth.set_topic_permission("/", ".*", "t", TopicPermission(write="^{username}$", read=""))
    with pytest.raises(AccessRefused):
        auth.check_topic(user, "/", "write", "t", "anything")


@pytest.mark.parametrize("pattern", ["(", r"(a)\1", "x" * 3000])
def test_bad_patterns_are_refused_when_set(pattern: str) -> None:
    auth = BrokerBench().auth
    with pytest.raises(BadPattern):
        auth.set_permission("/", "guest", Permission(configure=pattern, write="", read=""))
    assert auth.permissions[("/", "guest")] == EVERYTHING


def test_every_change_is_a_row() -> None:
    bench = BrokerBench(rows=())
    auth, definitions = bench.auth, bench.engine.definitions
    auth.set_password("bob", "x")
    auth.set_tags("bob", ("management",))
    auth.set_permission("/", "bob", EVERYTHING)
    auth.set_topic_permission("/", "bob", "t", TopicPermission(write="", read=""))
    assert definitions.of("user")[0]["tags"] == ["management"]
    assert len(definitions.rows) == 3
    auth.delete_vhost("/")
    assert len(definitions.rows) == 1
    auth.set_permission("/", "bob", EVERYTHING)
    auth.set_topic_permission("/", "bob", "t", TopicPermission(write="", read=""))
    auth.delete_user("bob")
    assert definitions.rows == {}


def test_a_new_password_keeps_the_tags() -> None:
    auth = BrokerBench().auth
    auth.set_tags("guest", ("administrator",))
    auth.set_password("guest", "other")
    assert auth.users["guest"].tags == ("administrator",)


def test_limits_stay_with_the_user() -> None:
    bench = BrokerBench()
    auth, definitions = bench.auth, bench.engine.definitions
    auth.set_limits("guest", {"max-channels": 3})
    auth.set_password("guest", "other")
    auth.set_tags("guest", ("monitoring",))
    assert auth.users["guest"].limits == {"max-channels": 3}
    assert definitions.of("user")[0]["limits"] == {"max-channels": 3}
    staged = list(definitions.changes)
    auth.set_limits("guest", {"max-channels": 3})
    assert definitions.changes == staged, "the same again writes nothing"
