"""What the machine says about itself."""

from __future__ import annotations

import os
import resource

from broker import resources


def test_this_process(tmp_path):
    found = resources.measure(str(tmp_path))
    assert 1 << 20 < found.rss_bytes < resources.memory_total_bytes()
    assert found.disk_free_bytes is not None
    assert found.disk_free_bytes >= 0


def test_a_file_system_that_is_away_is_no_error(tmp_path):
    assert resources.measure(str(tmp_path / "missing")).disk_free_bytes is None


def test_open_files_counts_descriptors():
    before = resources.open_files()
    found = os.open(os.devnull, os.O_RDONLY)
    assert resources.open_files() == before + 1
    os.close(found)


def test_sockets_leave_descriptors_to_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (1100, hard))
        assert resources.sockets_max() == 900
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
