"""The two shared stores of a vhost behind one set of handles."""

from __future__ import annotations

import pytest

from burrowmq.storage.shared.store import MessageStore, MessageStoreOptions
from burrowmq.storage.shared.vhost_store import TRANSIENT_SEGMENTS, VhostStore, forget_handles
from tests.simulation.store_world import make_message
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage


def store_on(filesystem: SimFileSystem) -> VhostStore:
    def one(name: str, first_segment: int, *, is_durable: bool) -> MessageStore:
        store = MessageStore(
            filesystem,
            MessageStoreOptions(
                directory=f"/v/{name}",
                quarantine_directory="/v/quarantine",
                identity=b"0123456789abcdef",
                is_durable=is_durable,
            ),
        )
        store.open_empty(first_segment)
        return store

    return VhostStore(
        "/",
        "/v",
        one("persistent", 0, is_durable=True),
        one("transient", TRANSIENT_SEGMENTS, is_durable=False),
    )


@pytest.fixture
def store() -> VhostStore:
    return store_on(SimFileSystem())


def mixed(count: int = 6) -> list[FakeMessage]:
    """Every second one is transient."""
    return [make_message(number, 100, number % 2 == 0) for number in range(count)]


def test_a_message_goes_to_the_store_that_its_flag_names(store: VhostStore) -> None:
    made = mixed()
    store.append(list(made))
    assert store.persistent.stats()["live_messages"] == 3
    assert store.transient.stats()["live_messages"] == 3
    assert [one.handle >= TRANSIENT_SEGMENTS << 32 for one in made] == [False, True] * 3
    assert [store.store_of(one.handle) for one in made[:2]] == [store.persistent, store.transient]


def test_a_read_gives_the_messages_in_the_order_asked_for(store: VhostStore) -> None:
    made = mixed()
    store.append(list(made))
    chosen = [made[at] for at in (5, 0, 3, 2)]
    assert store.read([one.handle for one in chosen]) == [one.record for one in chosen]
    persistent = made[::2]
    assert store.read([one.handle for one in persistent]) == [one.record for one in persistent]
    assert store.read([]) == []
    assert store.read([made[0].handle, 99]) == [made[0].record, None]


def test_references_are_counted_in_both(store: VhostStore) -> None:
    made = mixed()
    store.append(list(made))
    handles = [one.handle for one in made]
    store.add_refs(made[:3])
    store.drop_refs(handles)
    assert [store.contains(handle) for handle in handles] == [True] * 3 + [False] * 3
    store.drop_refs(handles[:3])
    assert not any(map(store.contains, handles))
    store.drop_refs([])


def test_what_is_there_or_on_its_way_only_gets_one_more_reference(store: VhostStore) -> None:
    there, new = mixed(2), [make_message(9, 100, True)]
    store.append(list(there))
    fresh: list[FakeMessage] = []
    repeated: list[FakeMessage] = []
    store.choose([*there, *new, *new], fresh, repeated)  # type: ignore[arg-type]
    assert (fresh, repeated) == (new, [*there, *new])


def test_a_message_whose_last_reference_went_is_new_again(store: VhostStore) -> None:
    (message, _) = made = mixed(2)
    store.append(list(made))
    store.drop_refs([message.handle])
    fresh: list[FakeMessage] = []
    store.choose([message], fresh, [])  # type: ignore[arg-type]
    assert fresh == [message]


def test_an_append_that_is_tried_again_appends_the_rest(store: VhostStore) -> None:
    made = mixed()
    store.append(list(made))
    store.append([*made, make_message(9, 100, True)])
    assert store.persistent.stats()["appended_messages"] == 4
    assert store.transient.stats()["appended_messages"] == 3


def test_forgotten_handles_are_none(store: VhostStore) -> None:
    made = mixed()
    store.append(list(made))
    forget_handles(made)
    assert {one.handle for one in made} == {-1}


def test_files_that_need_not_stay_open_are_closed(store: VhostStore) -> None:
    store.append(list(mixed()))
    store.persistent.sync()
    assert store.persistent.stats()["open_files"] == store.transient.stats()["open_files"] == 1
    store.release_files()
    assert store.persistent.stats()["open_files"] == store.transient.stats()["open_files"] == 0
