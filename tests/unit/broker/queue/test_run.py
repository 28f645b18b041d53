"""Messages in company: kinds, and a run as single messages that go back."""

from __future__ import annotations

import pytest

from burrowmq.broker.queue.run import DURABLE, LOGGED, TRANSIENT, DeliveryRun, Kind, returned
from tests.support.messages import message


@pytest.mark.parametrize(
    ("kind", "is_in_store"), [(TRANSIENT, False), (LOGGED, True), (DURABLE, True)]
)
def test_logged_as_a_mask_is_in_the_store_for_whatever_reason(
    kind: Kind, is_in_store: bool
) -> None:
    assert bool(kind & LOGGED) is is_in_store


def test_a_run_goes_back_with_its_ids_kind_and_expiries() -> None:
    messages = [message(b"1"), message(b"2")]
    assert returned(range(7, 9), messages, [0, 55], LOGGED, redelivered=True) == [
        (7, messages[0], 0, LOGGED, True),
        (8, messages[1], 55, LOGGED, True),
    ]


def test_without_expiries_nothing_expires() -> None:
    run = DeliveryRun([3], [message(b"1")], 1, TRANSIENT)
    assert (run.redelivered, run.expiries) == (False, None)
    assert returned(run.seqs, run.messages, run.expiries, run.kind, redelivered=False) == [
        (3, run.messages[0], 0, TRANSIENT, False)
    ]


def test_what_is_left_of_a_run_has_as_many_ids_as_messages() -> None:
    with pytest.raises(ValueError, match="shorter"):
        returned([1, 2], [message(b"1")], None, DURABLE, redelivered=True)
