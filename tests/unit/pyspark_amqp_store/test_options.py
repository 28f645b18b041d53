"""What a query on a store may say."""

from __future__ import annotations

import pytest

from pyspark_amqp.options.reading import BadOptions
from pyspark_amqp_store.options import StoreOptions, read_store_options


def test_everything() -> None:
    given = {
        "path": "/d",
        "view": "Records",
        "vhost": "/,v",
        "queues": '["a,b"]',
        "minseq": "5",
        "maxSeq": "9",
        "includeDeleted": "true",
        "verifyCrc": "false",
        "failOnDataLoss": "false",
        "includeHeadersRaw": "true",
        "partitionBytes": "1m",
        "pushFilters": "true",
    }
    assert read_store_options(given) == StoreOptions(
        "/d", "records", ("/", "v"), ("a,b",), 5, 9, True, False, False, True, 1 << 20, True
    )
    for path in ("/d", "file:/d", "file:///d"):
        assert read_store_options({"path": path}) == StoreOptions("/d")


def test_what_is_wrong_is_told_together() -> None:
    with pytest.raises(BadOptions) as caught:
        read_store_options({"queue": "q", "view": "bodies"})
    text = str(caught.value)
    assert "'path' is missing" in text
    assert "did you mean 'queues'?" in text
    assert "none of messages, records" in text
