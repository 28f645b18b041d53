"""burrowmq.broker.imports.inbox: it is bounded, and knows who has the queue there."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.imports.inbox import (
    UNREAD_COUNT,
    Failed,
    Inbox,
    Lost,
)
from burrowmq.protocol.client.events import ChannelEnded, DeliveryRun
from tests.support.messages import message


class PausedLink:
    """A link that only knows whether it is read."""

    is_paused = False

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


def test_the_inbox_is_bounded_by_messages_too_and_knows_which_came_before() -> None:
    inbox, link = Inbox(), PausedLink()
    either: Any = link
    tag = 1
    while not link.is_paused:
        run = DeliveryRun(1, b"import", tag, tag < 200, [message(b"")] * 100, 0)
        inbox.received(either, [run])
        tag += 100
    assert UNREAD_COUNT < inbox.count <= UNREAD_COUNT + 100
    some, again = inbox.look(300)
    assert (len(some), again) == (300, [True] * 200 + [False] * 100)
    last = 0
    while link.is_paused:
        last, _ = inbox.take(either)
    assert 0 < inbox.count < UNREAD_COUNT // 2
    assert last == tag - 1 - inbox.count


@pytest.mark.parametrize(
    ("code", "text", "kind"),
    [
        (403, "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use", Lost),
        (403, f"ACCESS_REFUSED - queue '{'q' * 220}", Lost),  # cut at 255 octets
        (403, "ACCESS_REFUSED - access to queue 'exclusive' in vhost '/' refused for user 'u'", Failed),
        (404, "NOT_FOUND - no queue 'exclusive' in vhost '/'", Failed),
        (405, "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q' in vhost '/'", Lost),
    ],
)  # fmt: skip
def test_only_who_has_the_queue_is_waited_for(code: int, text: str, kind: type[Exception]) -> None:
    inbox = Inbox()
    link: Any = PausedLink()
    inbox.received(link, [ChannelEnded(1, code, text)])
    with pytest.raises(kind):
        inbox.check()
