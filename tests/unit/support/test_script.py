"""Scripts of the simulated machine: steps that say what is done, where calls fail, and where and how it goes off."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from burrowmq.storage.names import NAME_FILE
from burrowmq.storage.queue.v2.index import entries_at
from burrowmq.storage.record import ENTRY_SIZE
from tests.simulation.machine.damages import stray_entry
from tests.simulation.machine.node import Violation
from tests.simulation.machine.places import pattern_of
from tests.simulation.machine.plans import packed, scripts, unpacked
from tests.simulation.machine.run import Run
from tests.simulation.machine.script import NoStep


def script(tmp_path: Path, text: str) -> Run:
    (tmp_path / "some.txt").write_text(f"# one\n{text}", encoding="utf-8")
    return Run(scripts(tmp_path)["one"])


def left(run: Run) -> list[str]:
    return [line.partition(" ")[2] for line in run.result.history]


def test_a_script_is_a_plan_with_its_limits(tmp_path: Path) -> None:
    run = script(
        tmp_path, "with log_limit=1500 logs=yes,no reverts scaled\nwith segment_size=900\npublish a"
    )
    plan = run.plan
    assert plan.limits.store == {"log_limit": 1500}
    assert plan.limits.logs == (True, False)
    assert plan.limits.segment_size == 900
    assert plan.limits.is_scaled
    assert plan.reverts
    assert [name for name, _ in plan.steps] == ["publish a"]
    assert unpacked(packed(plan, "why")) == (plan, "why")


@pytest.mark.parametrize("text", ["# one\npublish a\n\n# one\npublish b", "publish a"])
def test_what_is_no_script_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "some.txt").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="no script"):
        scripts(tmp_path)


@pytest.mark.parametrize("step", ["dance a", "consume d", "off power content:own=some"])
def test_a_step_that_cannot_be_taken_is_told(tmp_path: Path, step: str) -> None:
    with pytest.raises(NoStep):
        script(tmp_path, step).go()


def test_messages_go_where_they_are_said_to(tmp_path: Path) -> None:
    run = script(
        tmp_path,
        "declare c letters levels=3\npublish a 3\npublish c\nconsume a 20\nack 2\nrequeue 1\nlose client"
        "\nconsume c 20\nreject all",
    )
    run.go()
    states = {
        home.name: [copy.state for copy in home.all_copies()] for home in run.model.current.values()
    }
    assert states == {"dead": ["in"], "a": ["gone", "gone", "in"], "b": [], "c": ["gone"]}
    assert run.result.confirmed == 4


def test_calls_fail_where_and_as_often_as_is_said(tmp_path: Path) -> None:
    run = script(
        tmp_path, "with logs=yes\nfail fdatasync log 2\npublish a\npublish b\npublish a\npass 3"
    )
    run.go()
    assert run.machine.disk.failed == [("fdatasync", "/data/commit_log/0.log")]
    assert run.result.confirmed == 3


@pytest.mark.parametrize(
    ("cut", "is_there"),
    [("cut fdatasync log", False), ("cut fdatasync log 1 behind", True)],
)
def test_the_machine_goes_off_before_or_behind_a_call(
    tmp_path: Path, cut: str, is_there: bool
) -> None:
    run = script(tmp_path, f"with logs=yes\npublish a\n{cut}\nend power\npublish a 1 &\npublish b")
    run.go()
    assert left(run)[1:6] == [cut, "end power", "publish a 1 &", "publish b", "power cut"]
    assert [one.state == "in" for one in run.model.current["a"].all_copies()] == [True, is_there]


@pytest.mark.parametrize(
    ("fates", "state"),
    [("", "gone"), ("name:queues/=kept name:*/queues/*=kept content:own=kept", "in")],
)
def test_what_a_cut_leaves_is_said_by_place(tmp_path: Path, fates: str, state: str) -> None:
    """Nobody waits for a confirm: what is written is not synced."""
    text = f"with embed_below=4096\npublish b\npublish a 1 silent\npass 0.02\noff power {fates}"
    run = script(tmp_path, text)
    run.go()
    assert [one.state for one in run.model.current["a"].all_copies()] == [state]


def test_a_killed_process_leaves_its_pages(tmp_path: Path) -> None:
    run = script(tmp_path, "publish a silent\npass 0.5\noff killed\noff killed")
    run.go()
    assert [line for line in left(run) if " " not in line] == ["killed", "killed"]
    assert [one.state for one in run.model.current["a"].all_copies()] == ["in"]


def test_messages_and_queues_are_as_is_said(tmp_path: Path) -> None:
    run = script(
        tmp_path,
        "declare c transient levels=3\npublish c priority=2\npublish a 2\npublish b transient\nconsume a 20"
        "\nconsume c 20\nack 1 newest of=a",
    )
    run.go()
    published = [(one.priority, one.is_persistent) for one in run.model.publications.values()]
    assert published == [(2, True), (0, True), (0, True), (0, False)]
    homes = {home.name: home for home in run.model.homes}
    assert [homes[name].is_durable for name in "abc"] == [True, True, False]
    assert [copy.state for copy in homes["a"].all_copies()] == ["in", "gone"]


def test_places_of_levels_and_of_definitions() -> None:
    assert pattern_of("a#2/*.qi") != pattern_of("a/*.qi") == pattern_of("a#0/*.qi")
    assert fnmatchcase("/data/definitions.db-wal", pattern_of("definitions"))


def test_deliveries_are_chosen_by_queue_and_place(tmp_path: Path) -> None:
    run = script(
        tmp_path, "publish a 6\npublish b 2\nconsume a 0\nconsume b 0\nack 2 of=a from=1 step=3"
    )
    run.go()
    settled = {
        home.name: [copy.number for copy in home.all_copies() if copy.state == "gone"]
        for home in run.model.current.values()
    }
    assert settled == {"dead": [], "a": [2, 5], "b": []}


@pytest.mark.parametrize(
    ("damage", "damaged"),
    [("entry a 1 over=6", set()), ("entry a 1 over=2", {3}), ("record a 1 over=2", {3})],
)
def test_what_is_put_in_anothers_place_costs_that_one_at_most(
    tmp_path: Path, damage: str, damaged: set[int]
) -> None:
    run = script(tmp_path, f"publish a 4\ndamage {damage}\noff killed")
    run.go()
    assert run.auditor.damaged == damaged
    left = [copy.number for copy in run.model.current["a"].all_copies() if copy.state == "in"]
    assert left == [number for number in (1, 2, 3, 4) if number not in damaged]


def test_a_message_that_is_there_twice_by_damage_is_told(tmp_path: Path) -> None:
    run = script(tmp_path, "publish a 4\ndamage entry a 1 over=6\noff killed")
    run.auditor._drain = lambda: {"a": [1, 2, 2, 3, 4]}  # type: ignore[method-assign]
    with pytest.raises(Violation, match="2 is there 2 times, may be 1"):
        run.go()


def test_a_queue_whose_name_is_gone_is_told(tmp_path: Path) -> None:
    run = script(tmp_path, "publish a\npass 0.1\noff power")
    passed = run._take

    def take(step: str) -> None:
        if step == "off power":
            disk = run.machine.disk
            path = next(one for one in disk.paths() if one.endswith(NAME_FILE))
            disk.damage(path, 0, bytes(8))
        passed(step)

    run._take = take  # type: ignore[method-assign]
    with pytest.raises(Violation, match="the file with its name is gone"):
        run.go()


def test_a_store_is_written_anew_by_the_operators_tool(tmp_path: Path) -> None:
    run = script(
        tmp_path, "publish a 3\nresegment entry_count=8 segment_size=900\npublish a\noff power"
    )
    run.go()
    assert (run.machine.limits.entry_count, run.machine.limits.segment_size) == (8, 900)
    states = [copy.state for copy in run.model.current["a"].all_copies()]
    assert states == ["in"] * 4


@pytest.mark.parametrize(("cut", "entry_count"), [("create", 16), ("unlink", 8)])
def test_a_cut_in_that_leaves_the_old_store_or_the_new_one(
    tmp_path: Path, cut: str, entry_count: int
) -> None:
    text = f"publish a 3\ncut {cut} /data/SWAP\nend power\nresegment entry_count=8"
    run = script(tmp_path, text)
    run.go()
    assert left(run)[1:5] == [
        f"cut {cut} /data/SWAP",
        "end power",
        "resegment entry_count=8",
        "power cut",
    ]
    assert run.machine.limits.entry_count == entry_count
    assert [copy.state for copy in run.model.current["a"].all_copies()] == ["in"] * 3


def test_vhosts_come_and_go_with_what_is_in_them(tmp_path: Path) -> None:
    run = script(
        tmp_path,
        "vhost w\ndeclare w:c\npublish w:c 3\npublish a\noff power\nconsume w:c 2\nack 1 of=w:c"
        "\npublish w:c\nunvhost w\noff power\nvhost w\ndeclare w:c\npublish w:c\noff power",
    )
    run.go()
    first, second = [home for home in run.model.homes if home.name == "w:c"]
    assert [first.is_deleted, second.is_deleted] == [True, False]
    assert [copy.state for copy in second.all_copies()] == ["in"]
    assert (second.vhost, second.queue) == ("w", "c")
    assert run.result.confirmed == 6


def test_a_vhost_that_was_deleted_stays_away(tmp_path: Path) -> None:
    run = script(tmp_path, "vhost w\ndeclare w:c\nunvhost w\nvhost w\ndeclare w:c\npublish w:c")
    home = run.model.homes
    run.go()
    home[-1].is_deleted = True  # had somebody been told so, it would be a fault
    home[-1].is_deleting = False
    with run.machine.running(), pytest.raises(Violation, match="back that was deleted"):
        run.auditor.adopt()


def test_a_busy_store_has_what_was_settled_before(tmp_path: Path) -> None:
    run = script(tmp_path, "publish a 3\nconsume a 20\nack 2\nbusy b 2\noff power")
    run.go()
    assert [copy.state for copy in run.model.current["a"].all_copies()] == ["gone", "gone", "in"]
    assert len(run.model.publications) > 30


def test_something_moves_and_does_not_come_to_rest(tmp_path: Path) -> None:
    run = script(tmp_path, "with switch_share=1\npublish a &\nmove 6\noff power")
    run.go()
    assert [copy.state for copy in run.model.current["a"].all_copies()] == ["gone"]


def test_a_damaged_message_is_promised_no_more_and_others_are(tmp_path: Path) -> None:
    run = script(tmp_path, "with embed_below=0\npublish a 3\nflip shared message=2\noff power")
    run.go()
    assert [one.state for one in run.model.current["a"].all_copies()] == ["in", "gone", "in"]
    assert run.auditor.damaged == {2}


def test_who_says_nothing_of_damage_that_has_to_be_told_is_found(tmp_path: Path) -> None:
    run = script(tmp_path, "publish a\nflip /data/STORE.json 0 told\nrestart now")
    run.damages.clear()
    run.untold = "/data/STORE.json"
    run.plan = replace(run.plan, steps=(*run.plan.steps[:1], *run.plan.steps[2:]))
    with pytest.raises(Violation, match="is damaged and nobody says so"):
        run.go()


@pytest.mark.parametrize(("how", "state"), [("killed", "in"), ("power", "gone")])
def test_the_power_takes_what_is_only_written(tmp_path: Path, how: str, state: str) -> None:
    """With `confirm = written` a confirm covers the end of the process, and no more."""
    run = script(tmp_path, f"with confirm=written embed_below=4096\npublish a 3\noff {how}")
    run.go()
    assert [one.state for one in run.model.current["a"].all_copies()] == [state] * 3


def test_an_entry_that_strays_costs_nothing(tmp_path: Path) -> None:
    run = script(tmp_path, "publish a 4\npass 0.1\noff killed")
    strays: list[str] = []
    passed = run._take

    def take(step: str) -> None:
        if step == "off killed":
            disk, count = run.machine.disk, run.plan.limits.entry_count
            path = stray_entry(run.rng, disk, count)
            begin = entries_at(count)
            entries = disk.content(path)[begin:]
            places = [entries[at : at + ENTRY_SIZE] for at in range(0, len(entries), ENTRY_SIZE)]
            strays.extend(one.hex() for one in places[4:] if one in places[:4])
        passed(step)

    run._take = take  # type: ignore[method-assign]
    run.plan = replace(run.plan, has_damage=True)
    run.go()
    assert len(strays) == 1
    assert [copy.state for copy in run.model.current["a"].all_copies()] == ["in"] * 4


def test_an_index_that_is_full_has_no_room_for_a_stray(tmp_path: Path) -> None:
    run = script(tmp_path, "with entry_count=8\npublish a 8")
    run.go()
    assert stray_entry(run.rng, run.machine.disk, 8) == ""


def test_a_read_that_goes_wrong_costs_nothing(tmp_path: Path) -> None:
    run = script(
        tmp_path,
        "with embed_below=4096\npublish a 3 size=200\nrestart now\nmisread a/*.qs\nconsume a 20",
    )
    run.go()
    assert [one.nth for one in run.machine.disk.misreads] == []
    assert [copy.state for copy in run.model.current["a"].all_copies()] == ["in"] * 3


@pytest.mark.parametrize(("how", "is_clean"), [("now", True), ("failing", False)])
def test_a_stop_is_on_a_disk_that_is_well_or_goes_on_failing(
    tmp_path: Path, how: str, is_clean: bool
) -> None:
    run = script(tmp_path, f"publish a\nfail create /data/CLEAN.tmp 1 times=99\nrestart {how}")
    run.go()
    assert bool(run.machine.observer.named("recovery_finished")[1][0]) == is_clean


def test_what_was_set_aside_has_to_be_there(tmp_path: Path) -> None:
    text = "with embed_below=0\npublish a 3 size=200\nrestart now\nflip shared message=2"
    run = script(tmp_path, f"{text}\noff power\nconsume a 20\npass 3\noff power")
    run.go()
    assert len(run.machine.observer.named("message_set_aside")) == 1
    run.machine.observer.events.append(("message_set_aside", ("/", "a", 7, "a.7.1.msg", "")))
    with pytest.raises(Violation, match="was set aside and is not there"):
        run._check_set_aside()


def test_several_clients_have_their_own_channels(tmp_path: Path) -> None:
    run = script(
        tmp_path, "declare c\npublish c\ndelete c by=2 &\ndeclare c by=3 &\npublish b &\nmove 1"
    )
    run.go()
    assert [home.is_deleted for home in run.model.homes if home.name == "c"] == [True, False]
    assert run.next_client == 3
