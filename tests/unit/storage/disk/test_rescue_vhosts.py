"""A failed sync of one virtual host's shared store: messages of another one have the same handles, and stay theirs."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from burrowmq.storage.names import QueueNames, vhost_directory
from tests.simulation.store_world import make_message
from tests.support.offline_store import LARGE, commit, open_engine
from tests.support.sim_filesystem import SimFileSystem

VHOSTS = ("/", "other")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("failing", "other"), [VHOSTS, VHOSTS[::-1]])
def test_a_rescue_takes_no_message_of_another_vhost(failing: str, other: str, version: int) -> None:
    """A commit that is half applied finds no descriptor; what makes room for it, a sync, fails."""
    filesystem = SimFileSystem()
    engine = open_engine(Path("/data"), filesystem=filesystem)
    sent = {
        vhost: [make_message(100 * at + n, LARGE, True) for n in range(3)]
        for at, vhost in enumerate(VHOSTS)
    }
    for vhost in (failing, other):
        log = engine.open_queue(vhost, "q", durable=True, version=version)
        log.append(0, sent[vhost], None, 3 * LARGE)
        if vhost == failing:
            engine.hand_over()
    index = f"/{QueueNames(other, 'q').directory}/"
    filesystem.fail("create", errno.EMFILE, nth=2, path_part=index)  # behind the file of its name
    store = f"/{vhost_directory(failing)}/msg_store_persistent/"
    filesystem.fail("fdatasync", errno.EIO, path_part=store)
    commit(engine)
    assert engine.stats()["rescues"] == 1
    engine.idle()
    again = open_engine(Path("/data"), filesystem=filesystem.process_killed())
    for vhost in VHOSTS:
        answer = again.open_queue(vhost, "q", durable=True).read(0, 9, 1 << 20, lambda *_: None)
        assert answer is not None
        assert [one.raw for _, one, _ in answer[0]] == [one.raw for one in sent[vhost]]
    again.close()
