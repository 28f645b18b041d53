"""Virtual hosts go with what is in them."""

from __future__ import annotations

from burrowmq.management.commands import vhosts
from tests.support.fake_node import small_world


def test_deleting_a_vhost_closes_its_connections() -> None:
    node = small_world()
    (session,) = node.sessions
    vhosts.delete_vhost(node, "/")
    assert session.cancelled_before_close
    assert session.closed_with
    assert node.vhosts == {}
    assert node.auth.permissions == {}
