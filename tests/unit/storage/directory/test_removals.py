"""What a start is told of the files of deleted queues. Covers: storage/directory/removals.py"""

from __future__ import annotations

import pytest

from burrowmq.storage.directory.removals import KIND, WHOLE, Removals
from burrowmq.storage.errors import StorageError
from tests.support.memory_definitions import MemoryDefinitionStore

QUEUE = ("queue", '["/","q"]', {"durable": True})
PLACE = ("/", "5656b72c514958b2340e3458")


def test_what_a_commit_takes_the_definitions_of_is_to_go() -> None:
    store = MemoryDefinitionStore()
    Removals().commit(store, [QUEUE], [PLACE, ("other", WHOLE)])
    assert Removals(store.load()).found == {PLACE, ("other", WHOLE)}
    assert QUEUE in store.load()


def test_it_has_gone_when_the_next_definitions_come() -> None:
    store = MemoryDefinitionStore()
    removals = Removals()
    removals.commit(store, [], [PLACE])
    removals.commit(store, [QUEUE], [])
    assert store.load() == [QUEUE]


def test_what_a_start_has_found_goes_with_its_first_commit_and_the_next_has_another_key() -> None:
    store = MemoryDefinitionStore()
    Removals().commit(store, [], [PLACE])
    Removals(store.load()).commit(store, [], [("/", "another")])
    assert Removals(store.load()).found == {("/", "another")}
    assert [key for kind, key, _ in store.load() if kind == KIND] == ["2"]


def test_a_commit_that_failed_is_done_again() -> None:
    store, removals = MemoryDefinitionStore(), Removals()
    removals.commit(store, [], [PLACE])
    store.close()
    with pytest.raises(StorageError):
        removals.commit(store, [QUEUE], [("/", "another")])
    again = store.opened_again()
    removals.commit(again, [QUEUE], [("/", "another")])
    assert Removals(again.load()).found == {("/", "another")}


def test_what_is_made_before_its_definition_is_to_go_until_that_comes_and_the_others_as_well() -> (
    None
):
    store = MemoryDefinitionStore()
    Removals().commit(store, [], [PLACE])
    removals = Removals(store.load())
    removals.add(store, [("/", "made")])
    assert Removals(store.load()).found == {PLACE, ("/", "made")}
    removals.commit(store, [QUEUE], [])
    assert store.load() == [QUEUE]


def test_a_row_of_another_shape_says_nothing() -> None:
    rows = [(KIND, "x", {"a": 1}), (KIND, "1", [["/"], "q", ["/", "q"], ["/", "q", 1]])]
    removals = Removals(rows)
    assert removals.found == {("/", "q")}
    store = MemoryDefinitionStore()
    store.commit(rows)
    removals.commit(store, [], [])
    assert not store.load()
