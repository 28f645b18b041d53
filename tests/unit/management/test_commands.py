"""Changes to the node and the broker's refusals."""

from __future__ import annotations

from broker.auth import LoginRefused
from management import commands
from protocol.errors import AccessRefused, NotFound, PreconditionFailed
from tests.support.fake_node import small_world


def test_refusals_keep_their_words() -> None:
    for error, status in (
        (NotFound("no queue"), 404), (AccessRefused("no"), 401), (PreconditionFailed("other"), 400),
        (LoginRefused("who"), 401),
    ):  # fmt: skip
        refusal = commands.refusal_of(error)
        assert refusal is not None
        assert (refusal.status, refusal.reason) == (status, str(error))
    assert commands.refusal_of(KeyError("bug")) is None


def test_a_change_reaches_the_end_of_the_turn() -> None:
    node = small_world()
    commands.purge(node, "/", "lazy")
    commands.put_user(node, "bob", "x", None, ["management"])
    assert node.turn.touches == 2


def test_deleting_a_vhost_closes_its_connections() -> None:
    node = small_world()
    (session,) = node.sessions
    commands.delete_vhost(node, "/")
    assert session.closed_with
    assert node.vhosts == {}
    assert node.auth.permissions == {}
