"""Selecting scenarios and peers, rounds, and what a failing scenario leaves behind."""

from pathlib import Path

import pytest

from bench import runner
from bench.native import GeneratorFailed
from bench.scenarios import SCENARIOS, Outcome, Scenario
from bench.stage import Stage


def test_keys_are_unique() -> None:
    assert len({each.key for each in SCENARIOS}) == len(SCENARIOS)


def test_select_takes_keys_and_beginnings_in_table_order() -> None:
    found = [each.key for each in runner.select(["restart", "publish-16"], is_full=False)]
    assert found == ["publish-16", "restart"]
    found = [each.key for each in runner.select(["fsync"], is_full=False)]
    assert found == ["fsync-below", "fsync-above"]


def test_only_a_full_run_has_every_scenario() -> None:
    assert runner.select([], is_full=True) == SCENARIOS
    assert set(runner.select([], is_full=False)) < set(SCENARIOS)


def test_select_names_the_scenarios_it_knows() -> None:
    with pytest.raises(ValueError, match=r"no scenario .nothing.*restart"):
        runner.select(["nothing"], is_full=True)


def test_rounds_visit_every_peer_and_keep_failures(tmp_path: Path) -> None:
    def works(stage: Stage, peer: str) -> Outcome:
        return Outcome({"rate": 1.0}, "mode")

    def breaks(stage: Stage, peer: str) -> Outcome:
        raise GeneratorFailed("broken")

    plan = runner.Plan(
        is_full=False,
        rounds=2,
        scenarios=(
            Scenario(key="works", title="", run=works),
            Scenario(key="breaks", title="", run=breaks, max_rounds=1),
        ),
        peers=("burrowmq", "rabbitmq"),
        scratch=tmp_path,
    )
    lines: list[str] = []
    found = runner.run(plan, {}, lines.append)
    assert sorted(each.peer for each in found.measures if each.scenario == "works") == [
        *["burrowmq"] * 2,
        *["rabbitmq"] * 2,
    ]
    assert [each.failure for each in found.measures if each.scenario == "breaks"] == ["broken"] * 2
    assert len(lines) == 7
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("at", "rounds", "rates"), [(2, 1, [1, 2]), (3, 1, [1, 2]), (5, 2, [1, 2, 3, 4])]
)
def test_an_interrupted_run_keeps_the_rounds_that_are_complete(
    tmp_path: Path, at: int, rounds: int, rates: list[float]
) -> None:
    done: list[str] = []

    def interrupted(stage: Stage, peer: str) -> Outcome:
        if len(done) == at:
            raise KeyboardInterrupt
        done.append(peer)
        return Outcome({"rate": float(len(done))}, "mode")

    plan = runner.Plan(
        is_full=False,
        rounds=3,
        scenarios=(Scenario(key="one", title="", run=interrupted),),
        peers=("burrowmq", "rabbitmq"),
        scratch=tmp_path,
    )
    found = runner.run(plan, {}, lambda _line: None)
    assert found.rounds == rounds
    assert [each.values["rate"] for each in found.measures] == rates


def test_a_fresh_plan_throws_the_node_of_each_measurement_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dropped: list[str] = []
    touched: list[int] = []
    monkeypatch.setattr(Stage, "drop", lambda _stage, peer: dropped.append(peer))
    monkeypatch.setattr(runner.procfs, "touch_memory", touched.append)
    works = Scenario(key="works", title="", run=lambda _stage, _peer: Outcome({"rate": 1.0}))
    for is_fresh, touched_bytes in ((False, 0), (True, 5)):
        plan = runner.Plan(
            is_full=False,
            rounds=2,
            scenarios=(works,),
            peers=("burrowmq",),
            scratch=tmp_path,
            is_fresh=is_fresh,
            touched_bytes=touched_bytes,
        )
        assert dropped == touched == []
        runner.run(plan, {}, lambda _line: None)
    assert (dropped, touched) == (["burrowmq"] * 2, [5, 5])


def test_the_nodes_of_a_round_take_turns_before_they_are_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(Stage, "drop", lambda _stage, peer: done.append(f"{peer} dropped"))
    monkeypatch.setattr(runner.procfs, "touch_memory", lambda _size: done.append("touched"))

    def run(_stage: Stage, peer: str) -> Outcome:
        done.append(peer)
        return Outcome({"rate": 1.0})

    plan = runner.Plan(
        is_full=False,
        rounds=2,
        scenarios=(Scenario(key="one", title="", run=run),),
        peers=("burrowmq", "rabbitmq"),
        scratch=tmp_path,
        is_fresh=True,
        touched_bytes=5,
        turns=3,
    )
    found = runner.run(plan, {}, lambda _line: None)
    assert len(done) == 2 * 10
    for one in (done[:10], done[10:]):
        assert (one[0], one[2]) == ("touched", "touched")
        assert {one[1], one[3]} == {one[4], one[5]} == {"burrowmq", "rabbitmq"}
        # One node's last turn is behind the other's, which is gone by then.
        assert sorted(one[6:]) == ["burrowmq", "burrowmq dropped", "rabbitmq", "rabbitmq dropped"]
    assert sorted(found.by_turn("one", "rabbitmq", "rate")) == [
        (n, t) for n in range(2) for t in range(3)
    ]
