from __future__ import annotations

import pickle

from pyspark_amqp.wire.layout import Layout


def test_a_layout_pickles() -> None:
    copy = pickle.loads(pickle.dumps(Layout(">HI")))
    assert copy.unpack(b"\x00\x01\x00\x00\x00\x02") == (1, 2)
    assert type(copy) is Layout
