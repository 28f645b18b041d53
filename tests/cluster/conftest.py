"""Three real nats-servers; without their program these tests count as not run, by name.

`make cluster-test` builds it from its Go module.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.nats_servers import CannotBuild, NatsCluster, program
from tests.support.front_ends import Nodes


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Servers elect leaders, which takes seconds: `make cluster-test` and `make test-long` run these."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.long)
            item.add_marker(pytest.mark.needs_server)


@pytest.fixture(scope="session")
def nats_server() -> Path:
    """The server's program."""
    try:
        return program()
    except CannotBuild as reason:
        pytest.skip(str(reason))


@pytest.fixture
def cluster(nats_server: Path, tmp_path: Path) -> Iterator[NatsCluster]:
    """Three servers that sync always."""
    found = NatsCluster(tmp_path)
    try:
        found.start()
        yield found
    finally:
        found.stop()


@pytest.fixture
def nodes(tmp_path: Path, cluster: NatsCluster) -> Iterator[Nodes]:
    found = Nodes(tmp_path / "nodes", cluster)
    yield found
    found.close()
