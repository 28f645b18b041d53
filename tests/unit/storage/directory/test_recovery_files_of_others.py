"""A start, and a check, beside files that somebody else has put between the store's directories.

Covers: storage/directory/recovery.py, offline/check.py
"""

from __future__ import annotations

from pathlib import Path

import pytest

from burrowmq.offline.__main__ import main
from tests.support import offline_store


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize("place", ["vhosts", "vhosts/*", "vhosts/*/queues"])
def test_a_file_of_somebody_else_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_clean: bool, place: str
) -> None:
    offline_store.make_store(tmp_path, is_clean=is_clean)
    (directory,) = tmp_path.glob(place)
    (directory / ".DS_Store").write_bytes(b"of somebody else")
    assert main(["--data-dir", str(tmp_path), "check"]) == 0
    report = capsys.readouterr().out
    assert "3 queues, 900 messages" in report
    assert ".DS_Store" not in report
    engine = offline_store.open_engine(tmp_path)
    assert len(offline_store.read_all(engine, "mixed")) == 300
    engine.close()
    assert (directory / ".DS_Store").exists()
