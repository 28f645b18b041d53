"""A change of members, look by look: what each answer of the servers leads to."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from burrowmq.broker.queue.placement import LAST_MEMBER
from burrowmq.broker.replicated import members
from burrowmq.broker.replicated.members import MemberChange
from burrowmq.cluster.api import Refusal, Request
from tests.support.fake_scheduler import FakeScheduler

NOT_NOW = Refusal(503, 10008, "JetStream system temporarily unavailable")
FINAL = Refusal(400, 10005, "no suitable peers for placement")
BUSY = Refusal(503, 10075, "peer remap failed")


def state(*names: str, count: int = 0, **cluster: Any) -> dict[str, Any]:
    """The first leads."""
    replicas = [{"name": each, "current": True, "active": 1} for each in names[1:]]
    found = {"leader": names[0], "replicas": replicas, **cluster}
    return {"cluster": found, "config": {"name": "S", "num_replicas": count or len(names)}}


class Scene:
    """A change, the requests that it has sent, and what it has told."""

    def __init__(self, server: str, *, is_kept: bool, consumer: str = "") -> None:
        self.scheduler = FakeScheduler()
        self.asked: list[tuple[Request, Callable[[Any], None]]] = []
        self.told: list[str] = []
        change = MemberChange(
            "S", server, self, self.scheduler, self.told.append, is_kept=is_kept, consumer=consumer
        )
        change.begin()

    def ask(self, request: Request, then: Callable[[Any], None]) -> None:
        self.asked.append((request, then))

    def when_gone(self, stream: str, then: Callable[[str], None]) -> None:
        raise NotImplementedError

    def doom(self, stream: str) -> None:
        raise NotImplementedError

    def answer(self, found: Any, verb: str = "STREAM.INFO.S") -> Any:
        """To the only request, which is this one; gives its body. Then the next look is due."""
        ((request, then),) = self.asked
        self.asked.clear()
        assert request.subject.decode() == f"$JS.API.{verb}"
        then(found)
        if not self.asked:
            self.scheduler.advance(int(members.LOOK_S * 1000) + 1)
        return json.loads(request.payload) if request.payload else None


def test_one_more_is_asked_for_and_moved_until_it_is_the_named_one() -> None:
    scene = Scene("n5", is_kept=True)
    scene.answer(state("n1", "n2", "n3"))
    assert scene.answer({}, "STREAM.UPDATE.S") == {"name": "S", "num_replicas": 4}
    scene.answer(state("n1", "n2", "n3", count=4))  # not yet
    scene.answer(NOT_NOW)
    scene.answer(state("n1", "n2", "n3", "n4", desired={}))
    scene.answer(state("n1", "n2", "n3", "n4"))
    assert scene.answer(BUSY, "STREAM.PEER.EVACUATE.S") == {"peer": "n4"}
    scene.answer(state("n1", "n2", "n3", "n4"))
    assert scene.answer({}, "STREAM.PEER.EVACUATE.S") == {"peer": "n4"}
    late = state("n1", "n2", "n3", "n5")
    late["cluster"]["replicas"][2]["current"] = False
    scene.answer(late)
    assert scene.told == []
    scene.answer(state("n1", "n2", "n3", "n5"))
    assert scene.told == [""]


def test_who_leads_hands_over_before_it_goes() -> None:
    scene = Scene("n2", is_kept=False)
    scene.answer(state("n2", "n1", "n3"))
    asked = scene.answer({}, "STREAM.LEADER.STEPDOWN.S")
    assert asked == {"placement": {"preferred": "n1"}}
    scene.answer(state("", "n1", "n2", "n3"))
    scene.answer(state("n3", "n1", "n2"))
    assert scene.answer({}, "STREAM.UPDATE.S")["num_replicas"] == 2
    scene.answer(state("n3", "n1"))
    assert scene.told == [""]


def test_a_queue_that_is_to_have_one_member_is_not_delivered_from_meanwhile() -> None:
    scene = Scene("n2", is_kept=False, consumer="q")
    scene.answer(state("n2", "n1"))
    scene.answer({}, "STREAM.LEADER.STEPDOWN.S")
    ready = {**state("n1", "n2"), "ts": "2026-11-28T23:59:30.123456789Z"}
    scene.answer(ready)
    asked = scene.answer(NOT_NOW, "CONSUMER.PAUSE.S.q")
    assert asked == {"pause_until": "2026-11-29T00:00:30Z"}
    scene.answer(ready)
    scene.answer({"paused": True}, "CONSUMER.PAUSE.S.q")
    scene.answer(ready)
    assert scene.answer({}, "STREAM.UPDATE.S")["num_replicas"] == 1
    scene.answer(state("n1"))
    assert scene.answer(NOT_NOW, "CONSUMER.PAUSE.S.q") == {}
    assert scene.told == []
    assert scene.answer({"paused": False}, "CONSUMER.PAUSE.S.q") == {}
    assert scene.told == [""]


def test_a_change_that_fails_resumes_as_well() -> None:
    scene = Scene("n2", is_kept=False, consumer="q")
    scene.answer(state("n1", "n2"))
    scene.answer({}, "CONSUMER.PAUSE.S.q")
    scene.answer(state("n1", "n2"))
    scene.answer(FINAL, "STREAM.UPDATE.S")
    assert scene.told == []
    scene.answer({}, "CONSUMER.PAUSE.S.q")
    assert scene.told == [FINAL.text]


def test_of_more_members_nobody_is_paused() -> None:
    scene = Scene("n3", is_kept=False, consumer="q")
    scene.answer(state("n1", "n2", "n3"))
    assert scene.answer({}, "STREAM.UPDATE.S")["num_replicas"] == 2


@pytest.mark.parametrize(
    ("server", "is_kept", "found", "reason"),
    [
        ("n1", False, state("n1"), LAST_MEMBER),
        ("n6", True, state("n1", "n2", "n3", "n4", "n5"), "it has 5 members, which is the most"),
        ("n4", True, state("n1", "n2", "n3", desired={}),
         "its members are being changed already, or nobody leads it"),
        ("n4", True, state("n1", "n2", count=3), "its members are being changed already, or nobody leads it"),
        ("n2", True, state("n1", "n2", replicas=[{"name": "n2", "current": False, "active": 1}]),
         "its members do not have all of it yet"),
        ("n3", True, state("n1", "n2", replicas=[{"name": "n2", "offline": True}]),
         "no member is added or removed while one is down: n2"),
        ("n3", True, Refusal(404, 10059, "stream not found"), "stream not found"),
        ("n2", True, state("n1", "n2"), ""),
        ("n3", False, state("n1", "n2"), ""),
    ],
)  # fmt: skip
def test_what_is_said_at_once(server: str, is_kept: bool, found: Any, reason: str) -> None:
    scene = Scene(server, is_kept=is_kept)
    scene.answer(found)
    assert (scene.told, scene.asked) == ([reason], [])


def test_a_refusal_is_passed_on() -> None:
    scene = Scene("n3", is_kept=True)
    scene.answer(state("n1", "n2"))
    scene.answer(FINAL, "STREAM.UPDATE.S")
    assert scene.told == [FINAL.text]
    scene = Scene("n3", is_kept=True)
    scene.answer(state("n1", "n2"))
    scene.answer({}, "STREAM.UPDATE.S")
    scene.answer(Refusal(404, 10059, "stream not found"))
    assert scene.told == ["stream not found"]


@pytest.mark.parametrize(
    ("last", "reason"), [(NOT_NOW, f"{members.TIMED_OUT}: {NOT_NOW.text}"), (None, members.TIMED_OUT)]
)  # fmt: skip
def test_it_is_not_waited_for_without_end(last: Refusal | None, reason: str) -> None:
    scene = Scene("n3", is_kept=True)
    scene.answer(state("n1", "n2"))
    scene.answer({}, "STREAM.UPDATE.S")
    scene.scheduler.advance(int(members.PATIENCE_S * 1000))
    scene.answer(last or state("n1", "n2", count=3))
    assert (scene.told, scene.asked) == ([reason], [])


def test_moves_are_counted() -> None:
    scene = Scene("n9", is_kept=True)
    scene.answer(state("n1"))
    scene.answer({}, "STREAM.UPDATE.S")
    for number in range(members.MOVES_MAX):
        scene.answer(state("n1", f"n{2 + number % 2}"))
        scene.answer({}, "STREAM.PEER.EVACUATE.S")
    scene.answer(state("n1", "n2"))
    assert scene.told == ["the servers chose others time and again; those that keep it now: n1, n2"]
