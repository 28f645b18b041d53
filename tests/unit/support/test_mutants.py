"""The list of mutants fits the code: each text is found once, and what comes of it is a module that compiles.

Also which plans are tried on a mutant, in which order, and that one is found by its own.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from burrowmq.storage.names import parse_names
from tests.mutation.hunt import hunt
from tests.mutation.judge import Verdict
from tests.mutation.mutant import (
    LISTS,
    MET,
    ROOT,
    Mutant,
    NotApplicable,
    mutants,
    parsed,
    with_calls,
)
from tests.mutation.plans import directed, drawn, drawn_as, failed, kept, plan_by
from tests.mutation.reach import EDITS, IMPORT, Reach, lines_of
from tests.mutation.record import PAGE, RECORD, known_of, page, read_results, sums, table
from tests.simulation.machine.draw import plan_of
from tests.simulation.machine.plans import scripts

MUTANTS = mutants()
BLOCK = "# a name\ndurability storage/names.py | nobody sees it\n-old\n+new"


@pytest.mark.parametrize("path", sorted({one.path for one in MUTANTS}))
def test_each_mutant_applies_once_and_compiles(path: str) -> None:
    source = (ROOT / path).read_text(encoding="utf-8")
    original = ast.dump(ast.parse(source))
    for mutant in (one for one in MUTANTS if one.path == path):
        try:
            tree = ast.parse(mutant.applied())
        except SyntaxError as error:
            pytest.fail(f"'{mutant.name}' does not compile: {error}")
        assert ast.dump(tree) != original, f"'{mutant.name}' changes nothing"


def test_there_are_enough_and_none_twice() -> None:
    assert len(MUTANTS) >= 200
    names = Counter(one.name for one in MUTANTS)
    edits = Counter((one.path, one.old, one.new) for one in MUTANTS)
    assert [name for name, count in names.items() if count > 1] == []
    assert [edit for edit, count in edits.items() if count > 1] == []
    assert all(one.path.startswith("storage/") for one in MUTANTS)
    assert {path.suffix for path in LISTS.iterdir()} == {".txt"}


def test_a_text_that_is_not_there_once_is_told() -> None:
    for text in ("no such text", "import"):
        mutant = Mutant("m", "order", "storage/names.py", text, "", "")
        with pytest.raises(NotApplicable, match="'m'"):
            mutant.applied()


def test_a_block_is_read() -> None:
    (mutant,) = parsed(BLOCK)
    assert mutant == Mutant(
        "a name", "durability", "storage/names.py", "old", "new", "nobody sees it"
    )


def test_one_that_changes_nothing_is_told_with_its_reason_and_not_counted() -> None:
    (one,) = parsed(BLOCK.replace("nobody sees it", "equal: it is set again below"))
    assert (one.outside, one.equal) == ("", "it is set again below")
    text = page([one, MUTANTS[0]], {})
    assert "| a name | durability | `storage/names.py` | it is set again below |" in text
    assert "| sum | 1 | 0 | 0 | 0 | 1 | 0 | 0.0% |" in text


@pytest.mark.parametrize(
    "block",
    [
        BLOCK[2:],
        BLOCK.replace("durability", "beauty"),
        BLOCK.replace("-old\n", ""),
        BLOCK.replace("new", "old"),
    ],
)
def test_what_is_no_mutant_is_refused(block: str) -> None:
    with pytest.raises(ValueError, match="no mutant"):
        list(parsed(block))


def test_plans_go_by_their_names() -> None:
    assert list(drawn(3, 6)) == [
        *("seed 3", "drill 6", "focus 6"),
        *("fault 3", "drill 7", "focus 7"),
    ]
    assert plan_by("focus 6").seed == 6
    assert plan_by("seed 3") == plan_of(3)
    assert plan_by("fault 3") == plan_of(3, may_fail=True)
    assert plan_by("failed 1") == failed()[1]
    name, plan = next(iter(kept().items()))
    assert plan_by(f"kept {name}") == plan
    assert plan_by(drawn_as(f"kept {name}")) == plan
    assert drawn_as("seed 3") == "seed 3"


def test_a_mutants_own_plan_comes_first_then_those_that_found_most() -> None:
    first, second, *_, last = names = list(kept())
    found = directed(last, Counter({f"kept {second}": 2, f"kept {first}": 1}))
    assert found[:3] == [f"kept {one}" for one in (last, second, first)]
    names = [*(f"script {one}" for one in scripts()), *(f"kept {one}" for one in names)]
    assert sorted(found[: len(names)]) == sorted(names)
    assert found[len(names) :] == [f"failed {at}" for at in range(len(failed()))]


def test_kept_plans_are_of_mutants_that_are_there() -> None:
    assert kept().keys() <= {one.name for one in MUTANTS}


def test_a_verdict_counts_for_its_edit_and_what_the_machine_found_counts_most(
    tmp_path: Path,
) -> None:
    mutant = MUTANTS[0]
    survived = Verdict(mutant.name, mutant.edit, "", "", 7, 1.0, "none", ("seed 1",))
    by_test = survived._replace(by="tests/a.py::test", tested="all", tried=("seed 2",))
    by_plan = survived._replace(by="failed 1", why="lost [1] | 2", ran=1, tried=())
    path = tmp_path / "verdicts.jsonl"
    lines = [json.dumps(one._asdict()) + "\n" for one in (survived, by_plan, by_test)]
    path.write_text("".join(lines))
    results = read_results(tmp_path / "none", path)
    found = known_of(mutant, results)
    assert found is not None
    assert (found.by, found.tested, found.ran) == ("failed 1", "all", 7)
    assert set(found.tried) == {"seed 1", "seed 2"}
    assert known_of(mutant._replace(new="other"), results) is None
    (row,) = table([mutant], results)[2:]
    assert row.endswith("| failed 1 | lost [1] / 2 |")
    chosen = [mutant, *MUTANTS[1:3]]
    total = "| sum | 3 | 1 | 0 | 0 | 2 | 0 | 100.0% |"
    assert sums(chosen, results)[-1] == total
    assert total in page(chosen, results)


def test_the_page_says_what_is_on_record() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(MUTANTS, read_results(RECORD)), (
        "run python -m tests.mutation --record"
    )


def test_what_was_found_is_found_again() -> None:
    known = read_results(RECORD)
    mutant = next(one for one in MUTANTS if (its := known_of(one, known)) and its.is_simulator)
    assert "1 of 1 mutants were found again" in _again(f"^{re.escape(mutant.name)}$", "1")


@pytest.mark.long
@pytest.mark.timeout(0)
def test_a_sample_of_what_was_found_is_found_again() -> None:
    said = _again("", "40")
    assert "of 40 mutants were found again" in said


def _again(name: str, count: str) -> str:
    command = [sys.executable, "-m", "tests.mutation", name, "--recheck", count]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_only_what_comes_past_a_mutant_is_run(tmp_path: Path) -> None:
    mutant = MUTANTS[0]
    bits = f"{1 << max(lines_of(mutant)):x}"
    path = tmp_path / "reach.json"
    path.write_text(
        json.dumps({"seed 1": {mutant.path: bits}, "seed 2": {mutant.path: "1"}, IMPORT: {}})
    )
    names = ["seed 1", "seed 2", "seed 3"]
    assert Reach(path, tmp_path / "none").comes_past(mutant, names) == [
        "seed 1",
        "seed 3",
    ]  # nothing is known of 3
    assert Reach(tmp_path / "none", tmp_path / "none").comes_past(mutant, names) == names
    path.write_text(json.dumps({"seed 2": {}, IMPORT: {mutant.path: bits}}))
    assert Reach(path, tmp_path / "none").comes_past(mutant, names) == names, (
        "it matters when it is imported"
    )


def test_plans_that_come_past_a_mutant_most_often_are_first(tmp_path: Path) -> None:
    mutant = next(one for one in MUTANTS if MET in one.marked(has_edit=False))
    path = tmp_path / "times.json"
    times = {"seed 1": {mutant.edit: 1}, "seed 2": {}, "seed 3": {mutant.edit: 7}}
    path.write_text(json.dumps({**times, EDITS: {mutant.edit: 1}}))
    reach = Reach(tmp_path / "none", path)
    assert reach.most_often(mutant, ["seed 1", "seed 2", "seed 3"]) == ["seed 3", "seed 1"]
    assert reach.comes_past(mutant, ["seed 2", "seed 4"]) == ["seed 4"]  # nothing is known of 4
    other = mutant._replace(new=f"{mutant.new}  # another edit")
    assert reach.comes_past(other, ["seed 1", "seed 2"]) == ["seed 1", "seed 2"]


CALLED = """
def outer(one,
          two):
    "text"
    if one:
        pass
    elif two:
        return 1
    else:
        for each in two:
            each()
    return [
        one,
    ]
CONSTANT = 1
""".strip().split("\n")


@pytest.mark.parametrize(
    ("line", "before"), [(2, 4), (5, 5), (6, 4), (7, 7), (9, 9), (10, 10), (12, 11), (14, None)]
)
def test_a_call_is_put_before_the_statement(line: int, before: int | None) -> None:
    lines = with_calls("\n".join(CALLED), {line: "met()"}).split("\n")
    compile("\n".join(lines), "", "exec")
    found = [number for number, text in enumerate(lines, start=1) if text.strip() == "met()"]
    assert found == ([] if before is None else [before])


def test_a_mutant_is_put_into_what_is_loaded() -> None:
    code = (
        "from tests.mutation.mutant import Mutant\n"
        "from tests.mutation.swapped import put_in\n"
        "from burrowmq.storage.shared import segment_set\n"
        "from burrowmq.storage.names import parse_names as parse\n"
        "def mutant(path, old, new): return Mutant('m', 'order', path, old, new, '')\n"
        "put_in(mutant('storage/names.py', 'def parse_names(', '# text\\ndef parse_names('))\n"
        "put_in(mutant('storage/shared/segment_set.py', '_ATTEMPTS: Final = 3', '_ATTEMPTS: Final = 7'))\n"
        "print(segment_set._ATTEMPTS, parse.__code__.co_firstlineno)\n"
    )
    before = parse_names.__code__.co_firstlineno
    # What is put in stays: another process has it.
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True, text=True
    )
    attempts, line = map(int, done.stdout.split())
    assert attempts == 7
    assert line > before


def test_a_hunt_tells_what_it_ran() -> None:
    assert hunt(["seed 3", "failed 1"], 1e6) == (2, "", "")


def test_the_statement_that_a_mutant_is_in_says_so() -> None:
    for mutant in MUTANTS[::8]:
        for has_edit in (True, False):
            text = mutant.marked(has_edit=has_edit)
            compile(text, mutant.path, "exec")
            line = (ROOT / mutant.path).read_text(encoding="utf-8").split("\n")[mutant.line - 1]
            is_constant = line.startswith("_")  # of a module: no function has it
            assert (f"{MET}()" in text) is not is_constant, mutant.name
