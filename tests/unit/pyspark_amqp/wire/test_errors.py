from __future__ import annotations

import pickle

import pytest

from pyspark_amqp.wire.errors import (
    ChannelClosed,
    PublishRefused,
    PublishReturned,
    Returned,
    StepTimeout,
    WireError,
)

RETURNED = Returned(312, "NO_ROUTE", "x", "key", "m1")


@pytest.mark.parametrize(
    "error",
    [
        StepTimeout("broker", "queue.declare", "no answer in 30 s"),
        ChannelClosed("broker", "queue.declare 'q'", 404, "NOT_FOUND - no queue 'q'"),
        PublishRefused("broker", "publishing", 3),
        PublishReturned("broker", "publishing", 2, [RETURNED]),
    ],
)
def test_errors_come_through_a_pickle_as_they_were(error: WireError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_texts_name_broker_step_and_reason() -> None:
    error = ChannelClosed("amqp://h:5672", "queue.declare 'q'", 404, "NOT_FOUND - no queue 'q'")
    assert str(error) == "amqp://h:5672: queue.declare 'q': 404 NOT_FOUND - no queue 'q'"
    returned = PublishReturned("amqp://h:5672", "publishing", 2, [RETURNED])
    assert "2 messages came back unrouted" in str(returned)
    assert "exchange 'x', routing key 'key'" in str(returned)
