"""Commands about a cluster, each with each argument and option that it does not take: exit status and text.

64 where what is asked cannot be asked so, and the text says what can; 65 for what is not there; as RabbitMQ's programs.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.served_cluster import ServedCluster
from tests.support.served_members import make, status

INVALID = "Invalid options for this command:\n\n"
ARGUMENT = "Error (argument validation): "
NO_QUEUE = (65, "queue 'none' was not found in virtual host '/'")
NO_VHOST = (65, "Virtual host 'none' does not exist")
NO_SERVER = (64, ARGUMENT + "node n9 is none of the servers: n1, n2, n3")
NO_STATUS = (64, ARGUMENT + "voter status 'odd' is not recognised.")
NO_PATTERN = (64, ARGUMENT + "invalid regular expression: missing )")
MATRIX = {
    "add_member q n9": NO_SERVER,
    "add_member none n1": NO_QUEUE,
    "add_member q n1 --membership odd": NO_STATUS,
    "add_member q n1 --membership non_voter": (
        64,
        ARGUMENT + "a non_voter cannot be kept: each server that keeps a queue has a vote",
    ),
    "grow n1 all --membership odd": NO_STATUS,
    "add_member -p none q n1": NO_VHOST,
    "delete_member q n9": NO_SERVER,
    "delete_member none n1": NO_QUEUE,
    "delete_member -p none q n1": NO_VHOST,
    "add_replica s n9": NO_SERVER,
    "add_replica none n1": NO_QUEUE,
    "add_replica -p none s n1": NO_VHOST,
    "delete_replica s n9": NO_SERVER,
    "delete_replica none n1": NO_QUEUE,
    "delete_replica -p none s n1": NO_VHOST,
    "restart_stream none": NO_QUEUE,
    "restart_stream -p none s": NO_VHOST,
    "restart_stream s --preferred-leader-node n9": (
        64,
        ARGUMENT + "node n9 does not keep s; these do: n1, n2, n3",
    ),
    "quorum_status none": NO_QUEUE,
    "quorum_status -p none q": NO_VHOST,
    "stream_status none": NO_QUEUE,
    "stream_status -p none s": NO_VHOST,
    "grow n9 all": NO_SERVER,
    "grow n1 odd": (
        64,
        ARGUMENT + "strategy 'odd' is not recognised. Please use one of: all, even",
    ),
    "grow n1 all --queue-pattern (": NO_PATTERN,
    "grow n1 even --vhost-pattern (": NO_PATTERN,
    "shrink n9": NO_SERVER,
    # RabbitMQ has 69 for this one.
    "rebalance odd": (
        69,
        "Error:\ntype odd is not supported. Try one of all, classic, quorum, stream.",
    ),
    "rebalance all --queue-pattern (": NO_PATTERN,
    "rebalance quorum --vhost-pattern (": NO_PATTERN,
    "migrate_queues (": NO_PATTERN,
    "migrate_queues ( --dry-run": NO_PATTERN,
    "migrate_queues -p none .*": NO_VHOST,
    "import_definitions --mirrored-as odd": (
        64,
        INVALID + "--mirrored-as : odd (one of classic, quorum)",
    ),
    "import_definitions --mirrored-as=stream -": (
        64,
        INVALID + "--mirrored-as : stream (one of classic, quorum)",
    ),
}


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedCluster]:
    """One for all: none of the commands changes anything."""
    with pytest.MonkeyPatch.context() as patch:
        yield from make(tmp_path_factory.mktemp("three"), patch, "n1", "n2", "n3")


@pytest.mark.parametrize(("line", "code", "text"), [(line, *told) for line, told in MATRIX.items()])
def test_each_is_refused_with_what_would_do(
    three: ServedCluster, line: str, code: int, text: str
) -> None:
    output = three.served.ctl(*line.split(), stdin="{}")
    assert (output.code, output.err) == (code, f"{text}\n")


def test_nothing_was_changed(three: ServedCluster) -> None:
    assert sorted(status(three)) == ["n1", "n2", "n3"]
