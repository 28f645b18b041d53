"""burrowmq.broker.imports.move: how much of a batch is stored, by how many persistent messages there are; the inbox."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.imports.move import (
    UNREAD_COUNT,
    Failed,
    Inbox,
    Lost,
    parts_of,
    stored_of,
)
from burrowmq.broker.imports.recognise import SIZE
from burrowmq.protocol.client.events import ChannelEnded, DeliveryRun
from tests.support.messages import body_of, message


def batch(kinds: str) -> bytes:
    """Digests: P persistent, t transient."""
    return b"".join(bytes(SIZE - 1) + bytes((kind == "P",)) for kind in kinds)


@pytest.mark.parametrize(
    ("kinds", "count", "stored"),
    [
        ("PPP", 0, 0), ("PPP", -4, 0), ("PPP", 1, 1), ("PPP", 3, 3), ("PPP", 9, 3),
        ("tPtPt", 0, 0), ("tPtPt", 1, 2), ("tPtPt", 2, 5), ("ttt", 0, 0), ("", 0, 0),
    ],
)  # fmt: skip
def test_how_much_of_a_batch_is_stored(kinds: str, count: int, stored: int) -> None:
    assert stored_of(batch(kinds), count) == stored


@pytest.mark.parametrize(
    ("priorities", "level_count", "parts"),
    [
        ("", 3, []), ("", 1, []), ("210", 1, ["210"]), ("222", 3, ["222"]), ("2210", 3, ["22", "1", "0"]),
        ("9922", 3, ["9922"]), ("020", 3, ["0", "2", "0"]), ("0202", 3, ["0202"]),
    ],
)  # fmt: skip
def test_a_batch_is_cut_where_the_priority_changes(
    priorities: str, level_count: int, parts: list[str]
) -> None:
    """As this queue has it: what is above its highest is that. Where they come mixed it is not cut."""
    some = [message(each.encode(), priority=int(each)) for each in priorities]
    found = parts_of(some, level_count)
    assert ["".join(body_of(each.raw).decode() for each in part) for part in found] == parts


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
