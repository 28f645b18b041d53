"""Unacked against a dict: any order of deliveries, settlements, holes, multiple acks and roll-backs."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from burrowmq.broker.channel.unacked import Delivery, Piece, Unacked, UnknownTag
from burrowmq.broker.queue.run import DURABLE, TRANSIENT, DeliveryRun
from tests.support.messages import message
from tests.support.queue_bench import QueueBench

Entry = tuple[int, bytes, int, int]


class UnackedModel(RuleBasedStateMachine):
    """The model maps each outstanding tag to (seq, raw message, deadline, kind)."""

    @initialize()
    def start(self) -> None:
        self.unacked = Unacked()
        self.queue = QueueBench().queue
        self.model: dict[int, Entry] = {}
        self.settled: list[Piece] = []
        self.next_tag = 1

    @rule(count=st.integers(1, 6), step=st.integers(1, 3), timed=st.booleans(), kept=st.booleans())
    def deliver(self, count: int, step: int, timed: bool, kept: bool) -> None:
        first = self.next_tag
        self.next_tag += count + step - 1  # tags of no_ack deliveries lie between
        kind = DURABLE if kept else TRANSIENT
        seqs = range(first * 10, first * 10 + count * step, step)
        messages = [message(b"%d" % seq) for seq in seqs]
        expiries = [seq + 5 for seq in seqs] if timed else None
        run = DeliveryRun(seqs, messages, 0, kind, False, expiries)
        self.unacked.add(Delivery(first, self.queue.origins[0], run, None))
        for place, seq in enumerate(seqs):
            due = expiries[place] if expiries else 0
            self.model[first + place] = (seq, messages[place].raw, due, kind)

    def _take(self, pieces: list[Piece], expected: list[int]) -> None:
        found: dict[int, Entry] = {}
        for piece in pieces:
            assert len(piece.tags) == len(piece.seqs) == len(piece.messages) > 0
            expiries = piece.expiries or [0] * len(piece.tags)
            for tag, seq, each, due in zip(
                piece.tags, piece.seqs, piece.messages, expiries, strict=True
            ):
                found[tag] = (seq, each.raw, due, piece.delivery.kind)
        assert list(found) == expected
        assert found == {tag: self.model.pop(tag) for tag in expected}
        self.settled += pieces

    @precondition(lambda self: self.next_tag > 1)
    @rule(data=st.data())
    def settle_range(self, data: st.DataObject) -> None:
        first = data.draw(st.integers(1, self.next_tag))
        last = data.draw(st.integers(first, min(first + 5, self.next_tag)))
        wanted = list(range(first, last + 1))
        unknown = [tag for tag in wanted if tag not in self.model]
        if unknown:
            with pytest.raises(UnknownTag) as caught:
                self.unacked.settle_range(first, last)
            assert caught.value.args == (unknown[0],)
        else:
            self._take(self.unacked.settle_range(first, last), wanted)

    @rule(data=st.data())
    def settle_up_to(self, data: st.DataObject) -> None:
        tag = data.draw(st.integers(0, self.next_tag))
        if tag and tag not in self.model:
            with pytest.raises(UnknownTag):
                self.unacked.settle_up_to(tag)
            return
        expected = sorted(each for each in self.model if not tag or each <= tag)
        self._take(self.unacked.settle_up_to(tag), expected)

    @precondition(lambda self: self.settled)
    @rule()
    def roll_back(self) -> None:
        pieces, self.settled = self.settled, []
        self.unacked.restore(pieces)
        for piece in pieces:
            expiries = piece.expiries or [0] * len(piece.tags)
            for tag, seq, each, due in zip(
                piece.tags, piece.seqs, piece.messages, expiries, strict=True
            ):
                self.model[tag] = (seq, each.raw, due, piece.delivery.kind)

    @precondition(lambda self: self.settled)
    @rule()
    def commit(self) -> None:
        self.settled = []

    @invariant()
    def counts_agree(self) -> None:
        if hasattr(self, "unacked"):
            assert self.unacked.count == len(self.model)


UnackedModel.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestUnackedModel = UnackedModel.TestCase
