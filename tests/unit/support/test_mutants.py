"""The list of mutants fits the code: each text is found once, and what comes of it is a module that compiles."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from tests.mutation.mutant import LISTS, ROOT, Mutant, NotApplicable, mutants, parsed

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
