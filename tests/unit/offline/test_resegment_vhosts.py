"""`burrowmq-store resegment` of a store with several virtual hosts, and one that was killed in the middle of its swap.

Covers: offline/resegment.py, offline/directory.py, storage/directory/swap.py
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from burrowmq.offline.__main__ import main
from burrowmq.offline.directory import open_directory
from burrowmq.offline.resegment import resegment
from burrowmq.storage.directory.terms import ENTRY_COUNT_KEY
from burrowmq.storage.files.filesystem import OsFileSystem
from tests.simulation.store_world import make_message
from tests.support import offline_store


def test_resegment_keeps_the_large_messages_of_every_vhost(tmp_path: Path) -> None:
    places = [("/", "a"), ("/", "b"), ("other", "a"), ("other", "b")]
    engine = offline_store.open_engine(tmp_path)
    want = {}
    for at, (vhost, name) in enumerate(places):
        made = [make_message(100 * at + n, offline_store.LARGE, True) for n in range(4)]
        want[vhost, name] = [one.raw for one in made]
        log = engine.open_queue(vhost, name, durable=True)
        log.append(0, made, None, 4 * offline_store.LARGE)
        offline_store.commit(engine)
        if not at:
            first = log
    first.ack(0, 3)  # what is behind them gets other slots
    want["/", "a"] = []
    offline_store.commit(engine)
    engine.close()
    assert main(["--data-dir", str(tmp_path), "resegment", "--entries", "512"]) == 0
    engine = offline_store.open_engine(
        tmp_path, replace(offline_store.OPTIONS, segment_entry_count=512)
    )
    found = {}
    for place in places:
        log = engine.open_queue(*place, durable=True)
        answer = log.read(0, 100, 1 << 20, lambda *_: None) or ([], 0)
        found[place] = [message.raw for _, message, _ in answer[0]]
    engine.close()
    assert found == want


def test_a_check_of_a_store_half_on_its_way_says_so(tmp_path: Path) -> None:
    """A resegment was killed when `vhosts` was the new store's and STORE.json still the old one's."""
    offline_store.make_store(tmp_path)
    assert main(["--data-dir", str(tmp_path), "check"]) == 0

    class Killed(BaseException):
        pass

    class Killing(OsFileSystem):
        def rename(self, source: str, target: str) -> None:
            if target == str(tmp_path / "STORE.json") and source.endswith("store.new/STORE.json"):
                raise Killed
            super().rename(source, target)

    with open_directory(str(tmp_path)) as directory:
        directory.filesystem = Killing()
        wanted = {**directory.recorded.limits, ENTRY_COUNT_KEY: 512}
        with pytest.raises(Killed):
            resegment(directory, wanted, offline_store.streams())
    # 69: it cannot be used as it is. Not 1: nothing of it is damaged.
    assert main(["--data-dir", str(tmp_path), "check"]) == 69
