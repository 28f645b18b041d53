"""burrowmq.broker.channel.methods.topology: what the handlers share."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.channel.methods.topology import answer, clean_name, refuse_default_exchange
from burrowmq.protocol.errors import AccessRefused
from burrowmq.protocol.methods import Queue as Methods
from tests.support.topology import FakeChannel, FakeSession, make_vhost


def test_names() -> None:
    assert clean_name("a\rb\n\r\n") == "ab"
    refuse_default_exchange("x")
    with pytest.raises(AccessRefused):
        refuse_default_exchange("")


@pytest.mark.parametrize(
    ("staged_before", "is_durable", "epochs_later", "waits"),
    [(0, False, 9, True), (1, False, 0, False), (1, True, 1, True), (1, True, 2, False)],
)
def test_a_reply_waits_for_what_it_promises(
    staged_before: int, is_durable: bool, epochs_later: int, waits: bool
) -> None:
    channel: Any = FakeChannel(FakeSession(make_vhost()))
    vhost = channel.vhost
    vhost.rows.staged, vhost.rows.durable_epoch = 1, vhost.engine.epoch
    vhost.engine.epoch += epochs_later
    reply = Methods.BindOk()
    answer(channel, reply, nowait=False, staged=staged_before, is_durable=is_durable)
    assert (channel.held, channel.sent) == (([reply], []) if waits else ([], [reply]))
