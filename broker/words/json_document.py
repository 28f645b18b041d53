"""JSON that comes from outside, read with a bound on how deep it is nested.

Owns no state; called by the HTTP API for the bodies of requests and by `broker.definitions.document` for files.
What was read is printed again later, often from deeper in the call stack, by functions that call themselves for each
level. Without a bound here, a document could be read that cannot be shown or exported.
"""

from __future__ import annotations

import json

DEPTH_MAX = 200
"""Objects and lists inside each other: more than a definition with the deepest field table needs."""


class BadJson(ValueError):
    """The text is no JSON, or nested deeper than DEPTH_MAX."""


def parse(text: str | bytes) -> object:
    """The value that the text stands for.

    Raises: BadJson.
    """
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadJson(str(error)) from error
    _check_depth(value)
    return value


def _check_depth(value: object) -> None:
    """Refuse nesting beyond DEPTH_MAX; goes level by level, without calling itself."""
    level = [value]
    for _ in range(DEPTH_MAX):
        level = [
            item
            for container in level
            if isinstance(container, dict | list)
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, dict | list)
        ]
        if not level:
            return
    raise BadJson(f"nested deeper than {DEPTH_MAX} levels")
