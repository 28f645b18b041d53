"""Tags as definitions and the HTTP API write them: a list, or one text with commas.

Owns no state. Source: rabbit_auth_backend_internal:put_user (3.13).
"""

from __future__ import annotations

from collections.abc import Mapping

ADMINISTRATOR = "administrator"


class NotBoolean(ValueError):
    """What is no truth value, where one has to be."""

    def __init__(self, value: object) -> None:
        super().__init__(f"not_boolean: {value}")
        self.value = value


def texts(value: object) -> tuple[str, ...]:
    """Tags: a list, or one text with commas as older exports have it."""
    if isinstance(value, str):
        return tuple(each.strip() for each in value.split(",") if each.strip())
    return tuple(str(each) for each in value) if isinstance(value, list) else ()


def with_tags(user: Mapping[str, object]) -> Mapping[str, object]:
    """What is said of a user, with tags where RabbitMQ 2.x said `administrator`, as 3.13 still takes it.

    Raises: NotBoolean.
    """
    said = user.get(ADMINISTRATOR)
    if "tags" in user or said is None:
        return user
    if said is True or said == "true":
        return {**user, "tags": [ADMINISTRATOR]}
    if said is False or said == "false":
        return {**user, "tags": []}
    raise NotBoolean(said)
