"""What belongs to the whole node has a name of its scenario's own, so that scenarios may run beside each other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.differential.broker import mark_of
from tests.differential.catalogue import FOLDER, all_scenarios

# Names that nobody makes, and what every node has.
NOT_THERE = {"nope", "nowhere", "nobody", "none", "nonsense", "new", "v1", "x", "a"}
ALWAYS_THERE = {"guest", "%2F", "/"}
NO_NAMES = {"bulk-delete", "without-permissions"}
# Addresses below which the next one or two parts name something of the whole node; {} is a name from a variable.
NODE_WIDE = re.compile(
    r"^(?:/api/)?(?:(?:vhosts|users|global-parameters|vhost-limits|user-limits|definitions|connections/username)/([^/?]+)"
    r"|(?:permissions|topic-permissions)/([^/?]+)(?:/([^/?]+))?"
    r"|(?:queues|exchanges|bindings|consumers|policies|operator-policies)/([^/?]+)"
    r"|parameters/[^/?]+/([^/?]+))"
)
# Commands whose first word after the name is a user, a virtual host or a global parameter.
NAMING = re.compile(
    r"^(?:\w+_(?:user|vhost|password|global_parameter)|\w+_user_\w+|set_user_tags)$"
)


def problems(source: str) -> list[str]:
    """Return the names of the whole node that are written out, with their lines."""
    return [
        f"{line}: {name}"
        for call in ast.walk(ast.parse(source))
        if isinstance(call, ast.Call)
        for line, name in _names(call)
        if name not in NOT_THERE | ALWAYS_THERE | NO_NAMES and "{}" not in name
    ]


def _names(call: ast.Call) -> Iterator[tuple[int, str]]:
    words = [_text(each) for each in call.args]
    if isinstance(call.func, ast.Attribute) and call.func.attr == "ctl":
        for word, name in pairwise(words):
            if not word or not name or name.startswith("-"):
                continue
            if word in {"-p", "--user"} or NAMING.match(word):
                yield call.lineno, name
    for word in words:
        if word is not None and (found := NODE_WIDE.match(word)):
            yield from ((call.lineno, name) for name in found.groups() if name)
    for key in call.keywords:
        if key.arg in {"vhost", "user"} and (name := _text(key.value)):
            yield call.lineno, name


def _text(node: ast.expr) -> str | None:
    """Return what a text says, {} for what is put into it; None for anything else."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(
                str(each.value) if isinstance(each, ast.Constant) else "{}" for each in parts
            )
    return None


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_names_of_the_whole_node_are_the_scenarios_own(path: object) -> None:
    found = problems((FOLDER / str(path)).read_text(encoding="utf-8"))
    if found:
        pytest.fail(
            "\n".join([*found, "=> name it by broker.own, broker.vhost.vhost or broker.user"]),
            pytrace=False,
        )


@pytest.mark.parametrize(
    ("call", "names"),
    [
        ('broker.http("PUT", "vhosts/mine", {})', ["mine"]),
        ('broker.http("PUT", f"vhosts/{vhost}", {})', []),
        ('broker.http("GET", "permissions/%2F/mine")', ["mine"]),
        ('broker.http("GET", "queues/mine/q")', ["mine"]),
        ('broker.http("GET", "queues/%2F/q")', []),
        ('broker.raw_http("GET", "/api/users/mine", {})', ["mine"]),
        ('broker.ctl("list_queues", "-p", "mine")', ["mine"]),
        ('broker.ctl("add_user", "mine", "secret")', ["mine"]),
        ('broker.ctl("set_global_parameter", "mine", "1")', ["mine"]),
        ('broker.ctl("delete_user", user)', []),
        ('broker.peer(user="mine", password="mine")', ["mine"]),
        ('broker.peer(vhost="nope")', []),
    ],
)
def test_what_the_check_finds(call: str, names: list[str]) -> None:
    assert problems(call) == [f"1: {name}" for name in names]


def test_no_two_scenarios_have_the_same_mark() -> None:
    scenarios = all_scenarios()
    assert len({mark_of(name) for name in scenarios}) == len(scenarios)
