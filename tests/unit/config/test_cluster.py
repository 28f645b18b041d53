"""burrowmq.config.cluster: servers of a list."""

from __future__ import annotations

from pathlib import Path

import pytest

from burrowmq.config.cluster import ALONE, servers
from burrowmq.config.load import load


def test_a_node_is_alone_unless_told_otherwise(tmp_path: Path) -> None:
    assert load(None, {}, (), None).config.cluster == ALONE
    assert (ALONE.urls, ALONE.mirrored) == (None, "classic")
    file = tmp_path / "rabbitmq.conf"
    lines = (
        "cluster.urls = nats://a:4222, tls://b",
        "cluster.replicas = 1",
        "cluster.mirrored = quorum",
    )
    file.write_text("\n".join(lines))
    found = load(str(file), {}, (), None).config.cluster
    assert (found.urls, found.replicas) == (("nats://a:4222", "tls://b"), 1)
    assert found.mirrored == "quorum"


@pytest.mark.parametrize(
    "value",
    ["a:4222", "http://a", "nats://", "nats://a:x", "nats://a/b", "nats://a?b", "nats://[a"],
)
def test_what_is_no_server_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="each server is nats://host:port or tls://host:port"):
        servers(f"nats://ok, {value}")


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no server in the list"):
        servers(" , ")


def test_a_password_in_a_url_is_refused_without_being_repeated() -> None:
    with pytest.raises(ValueError, match=r"cluster\.user and cluster\.password") as refused:
        servers("nats://u:hidden@a")
    assert "hidden" not in str(refused.value)
