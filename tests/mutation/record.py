"""What came of the mutants: verdicts as lines of text, and the page that shows them.

What a run finds is in build/mutants.jsonl. `write_record` keeps it in the project, one line for each mutant as the list
has it now, and writes docs/mutants.md from that. A verdict counts for one edit: where the list or the code that an
edit names has changed, the mutant is one that was not run. State: these two files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.mutation.judge import Verdict
from tests.mutation.mutant import KINDS, ROOT, Mutant

RECORD = Path(__file__).with_name("verdicts.jsonl")
PAGE = ROOT / "docs" / "mutants.md"
WHY = 90  # characters of a reason that are kept
COLUMNS = ("mutants", "simulator", "tests", "survived", "not run", "outside")
HEAD = """# Mutants of the store, and what finds them

Mistakes that somebody could make in `storage/`, and what finds each: a plan of the simulated machine (`kept`: of
`tests/mutation/plans.jsonl`, named after the mutant that it found first; `failed`: a line of
`tests/simulation/failing_plans.jsonl`), or a test. How that is found out, and how to run it: [testing](testing.md#mutants).
This page is written by `python -m tests.mutation --record`. "Nothing" says how many plans a mutant survived so far; after a few dozen that
is where the search stands, and not what the machine can see.
"""


def read_results(*paths: Path) -> dict[str, Verdict]:
    """What is known; of several verdicts on one edit that of the machine counts, then that of tests, then the last."""
    found: dict[str, Verdict] = {}
    for path in paths:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        for line in lines:
            verdict = Verdict(**json.loads(line))
            known = found.get(verdict.name)
            found[verdict.name] = verdict if known is None else verdict.beside(known)
    return found


def known_of(mutant: Mutant, results: dict[str, Verdict]) -> Verdict | None:
    """What came of this very edit; None where nothing of what could find it has run."""
    found = results.get(mutant.name)
    if found is None or found.edit != mutant.edit:
        return None
    return found if found.by or found.ran or found.tested != "none" else None


def sums(chosen: Iterable[Mutant], results: dict[str, Verdict]) -> list[str]:
    """How many of each kind were found by what."""
    counts: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for mutant in (one for one in chosen if not one.equal):
        verdict, count = known_of(mutant, results), counts[mutant.kind]
        fate = "not run"
        if verdict is not None:
            fate = "simulator" if verdict.is_simulator else "tests" if verdict.by else "survived"
        count["mutants"] += 1
        count[fate] += 1
        count["outside"] += bool(mutant.outside)
    rows = [f"| kind | {' | '.join(COLUMNS)} | killed of those that were run |", "| --- " * 8 + "|"]
    total: Counter[str] = sum(counts.values(), Counter())
    for kind, count in (*counts.items(), ("sum", total)):
        ran = count["mutants"] - count["not run"]
        share = (count["simulator"] + count["tests"]) / ran if ran else 0.0
        rows.append(f"| {kind} | {' | '.join(str(count[one]) for one in COLUMNS)} | {share:.1%} |")
    return rows


def table(chosen: Iterable[Mutant], results: dict[str, Verdict]) -> list[str]:
    """A row for each mutant."""
    rows = ["| mutant | kind | file | killed by | what it said |", "| --- " * 5 + "|"]
    for mutant in (one for one in chosen if not one.equal):
        verdict = known_of(mutant, results)
        if verdict is None:
            by, why = "not run", ""
        else:
            by, why = verdict.by or f"**nothing** ({verdict.ran} plans)", verdict.why[:WHY]
        if mutant.outside:
            why = f"{why} (the machine cannot see it: {mutant.outside})"
        cells = (mutant.name, mutant.kind, f"`{mutant.path}`", by, why)
        rows.append("| " + " | ".join(cell.replace("|", "/").strip() for cell in cells) + " |")
    return rows


def equals(chosen: Iterable[Mutant]) -> list[str]:
    """A row for each that changes nothing."""
    found = [one for one in chosen if one.equal]
    rows = [
        "## Mutants that change nothing",
        "",
        "Nobody can see these, so that nothing can find them; they are not counted above.",
        "",
        "| mutant | kind | file | why |",
        "| --- " * 4 + "|",
    ]
    rows += [f"| {one.name} | {one.kind} | `{one.path}` | {one.equal} |" for one in found]
    return ["", *rows] if found else []


def page(chosen: list[Mutant], results: dict[str, Verdict]) -> str:
    """The page for readers."""
    rows = [HEAD, *sums(chosen, results), "", *table(chosen, results), *equals(chosen), ""]
    return "\n".join(rows)


def write_record(chosen: list[Mutant], results: dict[str, Verdict]) -> None:
    """Keep the verdicts on these mutants, and write the page."""
    known = [verdict for mutant in chosen if (verdict := known_of(mutant, results)) is not None]
    short = [verdict._replace(why=verdict.why[:WHY], tried=()) for verdict in known]
    RECORD.write_text(
        "".join(json.dumps(verdict._asdict()) + "\n" for verdict in short), encoding="utf-8"
    )
    PAGE.write_text(page(chosen, {verdict.name: verdict for verdict in short}), encoding="utf-8")
