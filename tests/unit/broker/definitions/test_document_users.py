"""burrowmq.broker.definitions.document: passwords of users, new ones and those who are there.

Covers: broker/definitions/document.py

Source: rabbit_auth_backend_internal:put_user, update_user_password (3.13).
"""

from __future__ import annotations

import pytest

from burrowmq.broker.definitions.document import ImportRefused, import_document
from burrowmq.broker.rules.auth import LoginRefused
from burrowmq.broker.rules.password_rules import LENGTH, PasswordRules
from tests.support.bench.broker import BrokerBench


def take(node: BrokerBench, **entry: object) -> None:
    import_document(node, {"users": [{"name": "bob", "tags": "", **entry}]})


def logs_in(node: BrokerBench, password: str) -> bool:
    try:
        node.auth.authenticate("bob", password, is_loopback=True)
    except LoginRefused:
        return False
    return True


def test_a_document_changes_the_password_of_a_user_who_is_there() -> None:
    node = BrokerBench()
    node.auth.set_password("bob", "old")
    take(node, password="new")
    assert (logs_in(node, "old"), logs_in(node, "new")) == (False, True)


@pytest.mark.parametrize("password", ["new", ""])
def test_the_same_again_writes_nothing(password: str) -> None:
    node = BrokerBench()
    node.auth.set_password("bob", "old")
    take(node, password=password)
    assert not logs_in(node, "old")
    node.engine.definitions.changes.clear()
    take(node, password=password)
    assert node.engine.definitions.changes == []


def test_the_rules_are_asked_about_another_password_only(monkeypatch: pytest.MonkeyPatch) -> None:
    node = BrokerBench()
    node.auth.set_password("bob", "old")
    monkeypatch.setattr(node.auth, "_password_rules", PasswordRules(rule=LENGTH, min_length=8))
    take(node, password="old", tags="monitoring")
    assert node.auth.users["bob"].tags == ("monitoring",)
    with pytest.raises(ImportRefused, match="credential_validation_failed"):
        take(node, password="new")
    assert logs_in(node, "old")


def test_a_password_and_a_hash_together_are_refused() -> None:
    node = BrokerBench()
    with pytest.raises(
        ImportRefused, match=r"^both_password_and_password_hash_are_provided \(bob\)$"
    ):
        take(node, password="new", password_hash="")
    assert "bob" not in node.auth.users


def test_a_password_may_have_octets_that_are_no_utf_8() -> None:
    node = BrokerBench()
    for _ in range(2):
        take(node, password="\udc80bcdef")
    assert logs_in(node, "\udc80bcdef"), "as SASL has it"
    assert not logs_in(node, "bcdef")
