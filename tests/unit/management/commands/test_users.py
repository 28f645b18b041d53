"""Users through the API: passwords and hashes, what goes with a user, permissions and limits."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from burrowmq.broker.rules.auth import Access, LoginRefused, TopicPermission
from burrowmq.broker.rules.pattern import BadPattern
from burrowmq.management.answers.reply import ApiError
from burrowmq.management.commands import users
from burrowmq.protocol.errors import AmqpError
from tests.support.bench.node import NodeBench


def put(bench: NodeBench, password: str | None, password_hash: str | None = None) -> bool:
    return bench.perform(
        lambda: users.put_user(bench.node, "bob", password, password_hash, ["management"])
    )


def test_a_user_with_a_password_logs_in_with_it(bench: NodeBench) -> None:
    assert put(bench, "secret")
    found = users.authenticate(bench.node, "bob", "secret")
    assert (found.name, tuple(found.tags)) == ("bob", ("management",))
    with pytest.raises(LoginRefused):
        users.authenticate(bench.node, "bob", "else")
    assert not put(bench, "other"), "it was there"
    assert users.authenticate(bench.node, "bob", "other").name == "bob"


def test_a_user_with_a_hash_logs_in_with_what_was_hashed(bench: NodeBench) -> None:
    put(bench, None, users.hash_of(bench.node, "secret"))
    assert users.authenticate(bench.node, "bob", "secret").name == "bob"


def test_a_user_without_either_logs_in_with_nothing(bench: NodeBench) -> None:
    put(bench, None)
    for password in ("", "secret"):
        with pytest.raises(LoginRefused):
            users.authenticate(bench.node, "bob", password)


def test_what_is_no_hash_is_said_to_be_none(bench: NodeBench) -> None:
    with pytest.raises(ApiError) as refused:
        put(bench, None, "***")
    assert (refused.value.status, refused.value.reason) == (400, ["not_base64", "***"])
    with pytest.raises(ApiError) as refused:
        users.put_user(bench.node, "bob", None, "AAAA", [], "rot13")
    assert refused.value.reason == ["unknown_hashing_algorithm", "rot13"]
    assert "bob" not in bench.node.auth.users


def test_with_a_user_go_permissions_and_connections(bench: NodeBench) -> None:
    node = bench.node
    put(bench, "secret")
    bench.perform(lambda: users.put_permission(node, "/", "guest", [".*", ".*", ".*"]))
    (client,) = bench.clients
    assert bench.loop.run_until_complete(users.delete_users(node, ["guest"])) is None
    bench.perform(lambda: None)
    ((_, close),) = client.read()
    assert close.reply_text == "CONNECTION_FORCED - user 'guest' is deleted"
    assert "guest" not in node.auth.users
    assert node.auth.permissions == {}
    assert [row[:2] for row in bench.store.load() if row[0] == "user"] == [("user", '["bob"]')]


def test_very_many_are_deleted_in_turns_up_to_one_that_is_not_there(bench: NodeBench) -> None:
    names = [f"u{number}" for number in range(2 * users.DELETED_PER_TURN + 1)]
    for name in names:
        bench.node.auth.put_user(name, "")
        users.put_permission(bench.node, "/", name, ["", "", ""])
    others: list[int] = []

    async def deleted() -> str | None:
        asked = asyncio.ensure_future(users.delete_users(bench.node, [*names, "x", "guest"]))
        while not asked.done():
            others.append(len(bench.node.auth.users))
            await asyncio.sleep(0)
        return await asked

    assert bench.loop.run_until_complete(deleted()) == "x"
    bench.perform(lambda: None)
    assert len(set(others)) >= 3, others
    assert set(bench.node.auth.users) == {"guest"}
    assert {user for _, user in bench.node.auth.permissions} <= {"guest"}


def test_a_permission_is_set_and_taken(bench: NodeBench) -> None:
    node = bench.node
    put(bench, "secret")
    bench.perform(lambda: users.put_permission(node, "/", "bob", ["^q", "", ".*"]))
    found = node.auth.permissions["/", "bob"]
    assert (found.configure, found.write, found.read) == ("^q", "", ".*")
    bench.perform(lambda: users.delete_permission(node, "/", "bob"))
    assert ("/", "bob") not in node.auth.permissions
    with pytest.raises(BadPattern):
        users.put_permission(node, "/", "bob", ["(", "", ""])


def call(bench: NodeBench, name: str, *, is_trusted: bool = False) -> Any:
    caller = SimpleNamespace(is_trusted=is_trusted, name=name)
    return cast("Any", SimpleNamespace(node=bench.node, caller=caller))


def test_callers_need_the_permission_that_a_client_needs_but_for_burrowctl(
    bench: NodeBench,
) -> None:
    put(bench, "secret")
    users.require(call(bench, "guest"), "/", "configure", "queue", "q")
    wanted: tuple[str, Access, Any, str] = ("/", "configure", "queue", "q")
    with pytest.raises(AmqpError, match="access to queue 'q' in vhost '/' refused for user 'bob'"):
        users.require(call(bench, "bob"), *wanted)
    users.require(call(bench, "nobody", is_trusted=True), *wanted)


def test_topic_permissions_are_set_for_one_exchange_and_taken_one_or_all(bench: NodeBench) -> None:
    node = bench.node
    for exchange in ("amq.topic", "amq.direct"):
        bench.perform(
            lambda each=exchange: users.put_topic_permission(node, "/", "guest", each, ["^a", "^b"])
        )
    kept = node.auth.topic_permissions["/", "guest"]
    assert kept["amq.topic"] == TopicPermission(write="^a", read="^b")
    bench.perform(lambda: users.delete_topic_permission(node, "/", "guest", "amq.topic"))
    assert list(node.auth.topic_permissions["/", "guest"]) == ["amq.direct"]
    bench.perform(lambda: users.delete_topic_permission(node, "/", "guest", None))
    assert not node.auth.topic_permissions.get(("/", "guest"))


def test_a_topic_permission_that_is_no_pattern_is_refused_with_its_place(bench: NodeBench) -> None:
    with pytest.raises(ApiError) as refused:
        users.put_topic_permission(bench.node, "/", "guest", "amq.topic", [".*", "("])
    word, pattern, (text, place) = refused.value.reason
    assert (word, pattern, place) == ("invalid_regexp", "(", 1)
    assert text


def test_limits_replace_those_before(bench: NodeBench) -> None:
    node = bench.node
    bench.perform(lambda: users.set_user_limits(node, "guest", {"max-channels": 3}))
    bench.perform(lambda: users.set_user_limits(node, "guest", {"max-connections": 2}))
    assert node.auth.users["guest"].limits == {"max-connections": 2}
