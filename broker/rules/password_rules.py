"""Which passwords users may be given: any, long ones, or those that fit a regular expression.

Owns no state. Asked by `broker.rules.auth` when an operator or a definitions document gives a user a password; who the
configuration itself names, and hashes, whose password nobody knows, are not asked about. Lengths are in octets.

Source: RabbitMQ's rabbit_credential_validator and its three implementations (3.13), whose texts these are.
"""

from __future__ import annotations

from burrowmq.broker.rules.pattern import compile_pattern
from burrowmq.records import dataclass

ANYTHING = "rabbit_credential_validator_accept_everything"
LENGTH = "rabbit_credential_validator_min_password_length"
REGEXP = "rabbit_credential_validator_password_regexp"


class WeakPassword(ValueError):
    """A password that the rules do not let pass; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PasswordRules:
    """The rule that is in force, and what it compares with."""

    rule: str = ANYTHING
    min_length: int = 5
    regexp: str | None = None

    def check(self, password: str) -> None:
        """Refuse what does not fit; "" stands for no password at all.

        Raises: WeakPassword.
        """
        if self.rule not in (ANYTHING, LENGTH, REGEXP):
            raise WeakPassword(f"there is no rule {self.rule} here")
        if self.rule == LENGTH and _size(password) < self.min_length:
            raise WeakPassword(f"minimum required password length is {self.min_length}")
        if self.rule == REGEXP:
            if self.regexp is None:
                raise WeakPassword("rabbit.credential_validator.regexp config key is undefined")
            if not compile_pattern(self.regexp).is_in(password):
                raise WeakPassword(
                    "provided password does not match the validator regular expression"
                )


def _size(password: str) -> int:
    return len(password.encode("utf-8", "surrogateescape"))


ANY_PASSWORD = PasswordRules()
