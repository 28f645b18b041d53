"""What a server refuses without an answer: to which subject, and what is the same for all queues."""

from __future__ import annotations

import pytest

from burrowmq.cluster.denied import is_lasting, kind_of, published_subject

DIGEST = "0a1b" * 7 + "ff"
CREATE = f'Permissions Violation for Publish to "$JS.API.STREAM.CREATE.Q_{DIGEST}"'


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        (CREATE, f"$JS.API.STREAM.CREATE.Q_{DIGEST}"),
        ('Permissions Violation for Subscription to "_INBOX.a.>"', ""),
        ('Permissions Violation for Publish with Reply of "_INBOX.a.1"', ""),
        ("maximum subscriptions exceeded", ""),
    ],
)
def test_the_connection_goes_on(text: str, subject: str) -> None:
    assert is_lasting(text)
    assert published_subject(text) == subject


@pytest.mark.parametrize("text", ["Maximum Payload Violation", "Authorization Violation", ""])
def test_the_connection_ends(text: str) -> None:
    assert not is_lasting(text)


def test_queues_rows_and_front_ends_are_not_told_apart() -> None:
    other = CREATE.replace(DIGEST, DIGEST[::-1])
    assert kind_of(CREATE) == kind_of(other)
    assert kind_of(CREATE) == 'Permissions Violation for Publish to "$JS.API.STREAM.CREATE.Q_*"'
    assert kind_of(CREATE) != kind_of(CREATE.replace("CREATE", "INFO"))
    assert kind_of(f'"_INBOX.{DIGEST}.12.>"') == kind_of('"_INBOX.' + "c" * 24 + '.3.>"')
