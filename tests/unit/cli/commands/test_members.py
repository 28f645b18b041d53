"""Commands about members where no cluster is; with one: tests/unit/management/commands/test_members.py."""

from __future__ import annotations

import pytest

from tests.support.served import Served


@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        (("grow", "x@y", "all"), 0, "Growing all quorum queues on x@y...\n\n", ""),
        (("shrink", "x@y"), 0, "Shrinking quorum queues on x@y...\n\n", ""),
        (("shrink", "x@y", "--errors-only", "--formatter", "json"), 0, "[\n]\n", ""),
        (("grow", "x@y", "odd"), 64, "",
         "Error (argument validation): strategy 'odd' is not recognised. Please use one of: all, even\n"),
        (("add_member", "orders", "x@y"), 69, "Adding a replica for queue orders on node x@y...\n",
         "Error:\nCannot add members to a classic queue\n"),
        (("delete_replica", "orders", "x@y"), 69, "Removing a replica of queue orders on node x@y...\n",
         "Error:\nCannot delete replicas from a classic queue\n"),
        (("stream_status", "orders"), 69, "Status of stream queue orders on node rabbit@test ...\n",
         "Error:\nCannot get stream status of a classic queue\n"),
    ],
)  # fmt: skip
def test_without_a_cluster(
    served: Served, words: tuple[str, ...], code: int, out: str, err: str
) -> None:
    output = served.ctl(*words)
    assert (output.code, output.err) == (code, err)
    assert output.out.split() == out.split()
