"""The interpreted packer has every name of the contract; tests/unit/storage/record/test_record.py runs it."""

from __future__ import annotations

import pytest

from burrowmq.storage import record
from burrowmq.storage.record import _record_py


@pytest.mark.parametrize(
    "name",
    [
        "assign_handles",
        "crc32",
        "message_columns",
        "pack_index_entries",
        "pack_records",
        "ranges_of",
        "scan",
        "unpack_index_entries",
        "unpack_many",
        "unpack_record",
    ],
)
def test_has_what_the_chooser_wants(name: str) -> None:
    assert callable(getattr(_record_py, name))
    assert callable(getattr(record, name))
    assert _record_py.NAME == "interpreted"
