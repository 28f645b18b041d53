from __future__ import annotations

import pytest

pytest.importorskip("pyarrow", reason="needs pyarrow: run by `make test-spark`")

from pyspark_amqp.spool.marks import Mark


@pytest.mark.parametrize("mark", [Mark(), Mark(0), Mark(7, 2, 3), Mark(None, 0, 1)])
def test_a_mark_comes_back_as_it_was(mark: Mark) -> None:
    assert Mark.read(mark.octets()) == mark


def test_nothing_to_say_is_nothing() -> None:
    assert Mark().octets() == b""


@pytest.mark.parametrize("octets", [b"seven", b"[]", b"{"])
def test_what_is_none_is_refused(octets: bytes) -> None:
    with pytest.raises((ValueError, TypeError)):
        Mark.read(octets)
