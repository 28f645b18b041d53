"""burrowmq.broker.rules.password_rules."""

from __future__ import annotations

import pytest

from burrowmq.broker.rules.password_rules import (
    ANY_PASSWORD,
    LENGTH,
    REGEXP,
    PasswordRules,
    WeakPassword,
)


def test_any_password_passes_unless_there_is_a_rule() -> None:
    ANY_PASSWORD.check("")
    ANY_PASSWORD.check("x")


def test_the_length_is_counted_in_octets() -> None:
    rules = PasswordRules(rule=LENGTH, min_length=6)
    rules.check("éèà")
    rules.check("12345\udc80")  # an octet that is no UTF-8
    with pytest.raises(WeakPassword, match=r"^minimum required password length is 6$"):
        rules.check("short")
    with pytest.raises(WeakPassword, match=r"^minimum required password length is 5$"):
        PasswordRules(rule=LENGTH).check("")


def test_the_expression_is_looked_for_anywhere() -> None:
    rules = PasswordRules(rule=REGEXP, regexp="[0-9]{2}")
    rules.check("a12b")
    text = "^provided password does not match the validator regular expression$"
    with pytest.raises(WeakPassword, match=text):
        rules.check("a1b2")


def test_a_rule_without_its_expression_lets_nothing_pass() -> None:
    with pytest.raises(WeakPassword, match=r"credential_validator\.regexp config key is undefined"):
        PasswordRules(rule=REGEXP).check("long enough")


def test_a_rule_that_is_not_here_lets_nothing_pass() -> None:
    with pytest.raises(WeakPassword, match="there is no rule of_our_own here"):
        PasswordRules(rule="of_our_own").check("long enough")
