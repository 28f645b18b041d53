"""Counting what a query has read; archiving itself is tested with Spark."""

from __future__ import annotations

from pyspark_amqp_jobs.archive import Count


class Query:
    recentProgress: list[dict[str, int]] = []  # noqa: N815 - Spark's name


def test_batches_that_spark_has_forgotten_still_count() -> None:
    query = Query()
    count = Count(query)
    assert count.rows() == 0
    query.recentProgress = [{"batchId": at, "numInputRows": 10} for at in range(3)]
    assert count.rows() == 30
    query.recentProgress = [{"batchId": 2, "numInputRows": 10}, {"batchId": 3, "numInputRows": 5}]
    assert count.rows() == 35
