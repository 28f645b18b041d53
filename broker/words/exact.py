"""Values told apart as JSON and AMQP do, where Python calls several of them equal: 1, 1.0 and true.

Owns no state. Called where something that is there already must not be written again, and something else must:
`broker.definitions`.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping


def exact(value: object) -> Hashable:
    """What is equal for two values when their JSON is: the widths of integers are one type, and no others are."""
    if isinstance(value, Mapping):
        return (Mapping, *((key, exact(value[key])) for key in sorted(value)))
    if isinstance(value, list):
        return (list, *map(exact, value))
    if isinstance(value, float):
        return (float, repr(value))  # neither is -0.0 0.0, nor is NaN another thing than NaN
    if isinstance(value, int) and not isinstance(value, bool):
        return (int, int(value))
    return (type(value), value)
