"""What a read may say, by kind.

Covers: pyspark_amqp/options/source.py, pyspark_amqp/options/spool.py
"""

from __future__ import annotations

import pickle

import pytest

from pyspark_amqp.options import (
    BadOptions,
    DrainOptions,
    PeekOptions,
    Queues,
    read_batch_options,
    read_stream_options,
)
from pyspark_amqp.options.spool import SpoolPlace

SPOOL = {"spoolLocation": "/spool"}


def test_a_stream_needs_a_queue_and_a_spool() -> None:
    with pytest.raises(BadOptions) as raised:
        read_stream_options({})
    assert [problem.split(":")[0] for problem in raised.value.problems] == [
        "option 'spoolLocation' is missing",
        "option 'queue' is missing",
    ]


def test_a_stream_of_defaults() -> None:
    for place in ("file:/spool", "/a:/b", "rel/spool"):
        spool = read_stream_options({"queue": "a", "spoolLocation": place}).task.spool
        assert (spool.location, spool.is_object_store) == (place, False)
    found = read_stream_options({"queue": "a,b", "spoolLocation": "file:///spool"})
    assert found.queues == Queues(names=("a", "b"))
    assert not found.task.fails_on_malformed
    assert found.task.spool == SpoolPlace(location="file:///spool")
    assert (found.record_limit, found.byte_limit, found.consumer_count) == (None, None, 1)
    assert found.task.is_deduplicating
    assert found.fails_on_missing_queue
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_stream_of_everything() -> None:
    found = read_stream_options(
        {
            "queue": "q",
            **SPOOL,
            "maxOffsetsPerTrigger": "5000",
            "maxBytesPerTrigger": "10m",
            "maxBytesPerTask": "1m",
            "consumersPerQueue": "2",
            "prefetch": "100",
            "pollTimeoutMs": "500",
            "retryTimeoutMs": "0",
            "dedupe": "none",
            "inDoubtRetention": "1d",
            "failOnMissingQueue": "false",
            "failOnDataLoss": "false",
            "includeHeadersRaw": "true",
            "malformed": "FAIL",
        }
    )
    assert (found.record_limit, found.byte_limit) == (5000, 10 << 20)
    assert (found.consumer_count, found.prefetch_count) == (2, 100)
    task = found.task
    assert task.fails_on_malformed
    assert (task.idle_timeout_s, task.retry_timeout_s, task.task_bytes) == (0.5, 0.0, 1 << 20)
    assert not task.is_deduplicating
    assert found.in_doubt_retention_s == 86400
    assert not found.fails_on_missing_queue
    assert not found.fails_on_data_loss
    assert found.has_headers_raw


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"mode": "peek"}, "option 'mode' is for batch reads"),
        ({"maxRecordsPerTrigger": "1", "maxOffsetsPerTrigger": "1"}, "are the same option"),
        ({"prefetch": "65536"}, "no whole number from 1 to 65535"),
        ({"spoolLocation": "ftp://bucket/x"}, "neither a path nor one of s3://"),
        ({"spoolLocation": "s3:///x"}, "no s3://bucket/prefix"),
        ({"spoolLocation": "file://localhost/x"}, "'file://localhost/x' is no file:///path"),
        ({"spoolLocation": "file:x"}, "no path begins so; a URL has '://'"),
        ({"spoolLocation": "dbfs:/x"}, "no path begins so; a URL has '://'"),
        ({"spoolLocation": "S3://b/x", "maxBytesPerTask": "5g"}, "at most 4g with a spool on"),
        ({"spoolLocation": "s3://key:secret@bucket/x"}, "credentials do not belong into a URL"),
        ({"spool.region": "eu-1"}, "'spool.region' is for a spoolLocation on S3"),
        (
            {"spoolLocation": "s3://b", "spool.endpoint": "http://127.0.0.1:9"},
            "no https:// URL; spool.allowHttp=true allows http://",
        ),
        (
            {"minRecordsPerTrigger": "11", "maxRecordsPerTrigger": "10"},
            "11 is more than a batch may have",
        ),
        ({"maxTriggerDelay": "1m"}, "'maxTriggerDelay' needs 'minRecordsPerTrigger'"),
        ({"limit": "1"}, "option 'limit' is not known here"),
        ({"dedupe": "none", "dedupeRetention": "1m"}, "needs dedupe=messageId"),
        ({"drainId": "1"}, "option 'drainId'".lower()),
    ],
)
def test_what_a_stream_refuses(options: dict[str, str], problem: str) -> None:
    with pytest.raises(BadOptions) as raised:
        read_stream_options({"queue": "q", **SPOOL, **options})
    assert problem.lower() in str(raised.value).lower()


def test_a_batch_read_looks_by_default() -> None:
    found = read_batch_options({"queue": "q", "limit": "5"})
    assert isinstance(found, PeekOptions)
    assert found.limit == 5


def test_a_drain_needs_an_id() -> None:
    with pytest.raises(BadOptions, match="option 'drainId' is missing"):
        read_batch_options({"queue": "q", "mode": "drain", **SPOOL})
    found = read_batch_options({"queue": "q", "mode": "DRAIN", "drainId": "d", **SPOOL})
    assert isinstance(found, DrainOptions)
    assert (found.drain_id, found.limit) == ("d", None)


def test_looking_takes_no_spool() -> None:
    with pytest.raises(BadOptions, match="option 'spoollocation' is not known here"):
        read_batch_options({"queue": "q", **SPOOL})


def test_queues_by_a_pattern() -> None:
    found = read_stream_options({"queuePattern": r"orders\..*", **SPOOL})
    assert found.queues == Queues(pattern=r"orders\..*")
    assert not found.fails_on_missing_queue
    uris = "http://a:15672, https://b/rabbit"
    peeked = read_batch_options({"queuePattern": "x", "managementUri": uris})
    assert peeked.queues.management_uris == ("http://a:15672", "https://b/rabbit")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"queue": "q", "queuePattern": "q"}, "option 'queuePattern' excludes 'queue'"),
        ({"queuePattern": "("}, "option 'queuePattern': '(' is no regular expression"),
        ({"queue": "q", "managementUri": "http://h"}, "option 'managementUri' needs"),
        (
            {"queuePattern": "q", "failOnMissingQueue": "true"},
            "option 'failOnMissingQueue' is for 'queue'",
        ),
        ({"queuePattern": "q", "managementUri": "http://u:secret@h"}, "no http[s]://host:port"),
        ({"queuePattern": "q", "managementUri": "h:15672"}, "no http[s]://host:port"),
        ({"queuePattern": "q", "managementUri": "http://h:x"}, "no http[s]://host:port"),
    ],
)
def test_patterns_that_cannot_be(options: dict[str, str], said: str) -> None:
    with pytest.raises(BadOptions) as raised:
        read_batch_options(options)
    assert said in str(raised.value)
    assert "secret" not in str(raised.value)
    assert len(raised.value.problems) == 1


def test_messages_are_taken_on_executors_only() -> None:
    read_stream_options({"queue": "q", **SPOOL, "consumeOn": "executors"})
    with pytest.raises(BadOptions, match=r"taken on executors only.*on object storage"):
        read_stream_options({"queue": "q", **SPOOL, "consumeOn": "driver"})
    with pytest.raises(BadOptions, match="'cluster' is none of executors, driver"):
        read_batch_options(
            {"queue": "q", "mode": "drain", "drainId": "d", **SPOOL, "consumeOn": "cluster"}
        )


def test_a_spool_may_be_on_object_storage() -> None:
    found = read_stream_options(
        {
            "queue": "q",
            "spoolLocation": "s3a://bucket/spool",
            "spool.endpoint": "http://127.0.0.1:7070",
            "spool.region": "eu-1",
            "spool.allowHttp": "true",
        }
    )
    assert found.task.spool == SpoolPlace(
        location="s3a://bucket/spool",
        endpoint="http://127.0.0.1:7070",
        region="eu-1",
        is_http_allowed=True,
    )
    azure = "abfss://container@account.dfs.core.windows.net/spool"
    assert read_stream_options({"queue": "q", "spoolLocation": azure}).task.spool.location == azure


def test_a_secret_in_a_location_is_not_repeated() -> None:
    for location in (
        "s3://key:secret@bucket/x",
        "s3n://key:secret@bucket/x",
        "s3://key:sec/secret@bucket/x",
        "s3n://key:sec#secret@bucket/x",
        "s3n://secret@bucket/x",
        "s3://secret@bucket/x",
        "s3://bucket/x#secret",
        "az://container/x?sig=secret",
    ):
        with pytest.raises(BadOptions, match="credentials do not belong into a URL") as found:
            read_stream_options({"queue": "q", "spoolLocation": location})
        assert "secret" not in str(found.value)
    for location in ("s3n:/key:secret@bucket/x", "S3:key:secret@bucket"):
        with pytest.raises(BadOptions, match="a URL has '://'") as found:
            read_stream_options({"queue": "q", "spoolLocation": location})
        assert "secret" not in str(found.value)
    for endpoint in ("http://key:secret@host", "https://host/?sig=secret", "http://host#secret"):
        place = {"spoolLocation": "s3://b/x", "spool.endpoint": endpoint}
        with pytest.raises(BadOptions, match="credentials do not belong into a URL") as found:
            read_stream_options({"queue": "q", **place})
        assert "secret" not in str(found.value)
    endpoint = {"spoolLocation": "s3://b/x", "spool.endpoint": "https://key:secret@host"}
    with pytest.raises(BadOptions, match=r"spool\.endpoint.*credentials") as found:
        read_stream_options({"queue": "q", **endpoint})
    assert "secret" not in str(found.value)


def test_a_batch_may_wait_for_messages() -> None:
    found = read_stream_options({**SPOOL, "queue": "q", "minRecordsPerTrigger": "1_000"})
    assert (found.least_records, found.longest_delay_s) == (1000, 900.0)


def test_an_option_of_another_kind_of_read_is_told_where_it_belongs() -> None:
    with pytest.raises(
        BadOptions, match="'spoollocation' is not known here: it is for streams and mode=drain"
    ):
        read_batch_options({"queue": "q", "spoolLocation": "/s"})
    with pytest.raises(BadOptions, match="'drainid' is not known here: it is for mode=drain"):
        read_stream_options({**SPOOL, "queue": "q", "drainId": "x"})
    with pytest.raises(BadOptions, match="did you mean 'maxRecordsPerTrigger'"):
        read_stream_options({**SPOOL, "queue": "q", "maxRecordPerTrigger": "5"})


def test_which_kind_of_read_was_meant_is_counted() -> None:
    typo = {"queue": "q", "spoolLocaton": "/s"}
    fitting = []
    for read in (read_stream_options, read_batch_options):
        with pytest.raises(BadOptions) as found:
            read(typo)
        fitting.append(found.value.fitting_count)
    assert fitting == [2, 1]
