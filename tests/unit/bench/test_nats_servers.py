"""bench.nats_servers: one version of the server everywhere."""

from __future__ import annotations

from pathlib import Path

from bench.nats_servers import VERSION

ROOT = Path(__file__).parents[3]


def test_natsd_is_the_server_of_the_tests() -> None:
    required = (ROOT / "cluster" / "natsd" / "go.mod").read_text()
    assert f"github.com/nats-io/nats-server/v2 v{VERSION}\n" in required
