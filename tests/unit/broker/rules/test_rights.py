"""burrowmq.broker.rules.rights: the user and the virtual host are put in where something is asked."""

from __future__ import annotations

import pytest

from burrowmq.broker.rules.auth import Auth, Permission, TopicPermission
from burrowmq.broker.rules.rights import Rights
from burrowmq.protocol.errors import AccessRefused
from tests.support.bench.broker import BrokerBench


@pytest.fixture
def auth() -> Auth:
    return BrokerBench().auth


def test_what_is_asked_is_asked_of_one_user_in_one_vhost(auth: Auth) -> None:
    user = auth.put_user("u", "secret", ())
    rights = Rights(auth, user, "/")
    with pytest.raises(AccessRefused, match="read access to queue 'q' in vhost '/' refused"):
        rights.check("read", "queue", "q")
    auth.set_permission("/", "u", Permission(configure="", write="", read="^q"))
    rights.check("read", "queue", "q")
    with pytest.raises(AccessRefused):
        Rights(auth, user, "other").check("read", "queue", "q")


def test_changes_count_at_once_and_raise_the_generation(auth: Auth) -> None:
    rights = Rights(auth, auth.put_user("u", "secret", ()), "/")
    before = rights.generation
    assert not rights.is_topic_limited("amq.topic")
    permission = TopicPermission(write="^a", read="")
    auth.set_topic_permission("/", "u", "amq.topic", permission)
    assert rights.is_topic_limited("amq.topic")
    rights.check_topic("write", "amq.topic", "a.b")
    with pytest.raises(AccessRefused):
        rights.check_topic("write", "amq.topic", "b")
    assert rights.generation > before
