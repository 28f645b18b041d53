"""Values as texts: the way rabbitmqctl prints them in tables, JSON and Erlang terms.

Owns no state; used by `cli.render`. The node sends plain JSON, plus two shapes of its own: `{"table": [[key, type,
value], ...]}` for AMQP tables, which keeps order and types, and `{"tuple": [...]}`. Source: the captured output of
rabbitmqctl 3.10 and the formatters of rabbitmq_cli 3.13.
"""

from __future__ import annotations

import json
import sys
from typing import Any

# Columns whose texts are atoms in Erlang terms.
ATOMS = frozenset({"state", "type", "source_kind", "destination_kind", "activity_status", "leader", "node", "tags",
                   "members", "online", "cluster_state"})  # fmt: skip


def text(value: Any) -> str:
    """One cell of a table."""
    if value is None:
        return ""
    if isinstance(value, str):
        return escaped(value)
    if isinstance(value, list):
        return "[" + ", ".join(text(item) for item in value) + "]"
    return _term(value, in_table=True)


def escaped(value: str) -> str:
    """Control characters must not reach a terminal: names come from clients."""
    if value.isprintable():
        return value
    return "".join(each if each.isprintable() else _octal(each) for each in value)


def _octal(character: str) -> str:
    """A character as octets of three digits each, so that what follows is no part of it; `printf %b` reads them."""
    return "".join(f"\\{octet:03o}" for octet in _octets(character))


def _octets(value: str) -> bytes:
    """The octets of a text: those that a client sent, also where they are no UTF-8."""
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")  # half a character that JSON spelt out


def quoted(value: str) -> str:
    """A string in double quotes."""
    return '"' + escaped(value.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _term(value: Any, *, in_table: bool) -> str:
    """A term; strings are "plain" in tables and <<"binaries">> in the erlang formatter."""
    if value is None:
        return "undefined" if in_table else "''"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return quoted(value) if in_table else _binary(value)
    if isinstance(value, float):
        from burrowmq.cli.erlang_terms import number  # only here: most lists show no arguments

        return number(value)
    if isinstance(value, list):
        return "[" + ",".join(_term(item, in_table=in_table) for item in value) + "]"
    if isinstance(value, dict):
        return _mapping(value, in_table=in_table)
    return str(value)


def _binary(value: str) -> str:
    """A text as Erlang reads it back: a string of octets, not of characters."""
    from burrowmq.cli.erlang_terms import binary

    return binary(_octets(value).decode("latin-1"))


def _atom(value: str) -> str:
    from burrowmq.cli.erlang_terms import atom

    return atom(_octets(value).decode("latin-1"))


def _mapping(value: dict[str, Any], *, in_table: bool) -> str:
    if "octets" in value:
        from burrowmq.cli.erlang_terms import flat

        return flat(value["octets"])
    if "tuple" in value:
        return "{" + ",".join(_term(item, in_table=in_table) for item in value["tuple"]) + "}"
    if "table" not in value:
        pairs = ((key, "", item) for key, item in value.items())
        return "[" + ",".join(_pair(key, kind, item, in_table) for key, kind, item in pairs) + "]"
    return _fields(value["table"], in_table)


def _fields(fields: list[Any], in_table: bool) -> str:
    return "[" + ",".join(_pair(key, kind, item, in_table) for key, kind, item in fields) + "]"


def _pair(key: str, kind: str, value: Any, in_table: bool) -> str:
    shown, name = _typed(kind, value, in_table), _term(key, in_table=in_table)
    return f"{{{name},{shown}}}" if in_table or not kind else f"{{{name},{kind},{shown}}}"


def _typed(kind: str, value: Any, in_table: bool) -> str:
    """A value of an AMQP table; `kind` is empty for plain JSON."""
    if kind == "table":
        return _fields(value, in_table)
    if kind == "array":
        return "[" + ",".join(_element(inner, item, in_table) for inner, item in value) + "]"
    return "undefined" if kind and value is None else _term(value, in_table=in_table)


def _element(kind: str, value: Any, in_table: bool) -> str:
    shown = _typed(kind, value, in_table)
    return shown if in_table else f"{{{kind},{shown}}}"


def erlang(column: str, value: Any) -> str:
    """One `{column,value}` of the erlang formatter."""
    if isinstance(value, str) and column in ATOMS:
        return f"{{{column},{_atom(value)}}}"
    if isinstance(value, str) and value.startswith("<") and column.endswith("pid"):
        return f"{{{column},{value}}}"
    if isinstance(value, list) and column in ATOMS:
        return f"{{{column},[{','.join(_atom(item) for item in value)}]}}"
    return f"{{{column},{_term(value, in_table=False)}}}"


def jsonable(value: Any) -> Any:
    """The value as the json formatters print it: tables are objects, what is not there is an empty string."""
    if value is None:
        return ""
    if isinstance(value, dict):
        if "table" in value:
            return _object(value["table"])
        if "tuple" in value:
            return [jsonable(item) for item in value["tuple"]]
        return {key: jsonable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [jsonable(item) for item in value]
    return value


def _object(fields: list[Any]) -> dict[str, Any]:
    return {key: _plain(kind, value) for key, kind, value in fields}


def _plain(kind: str, value: Any) -> Any:
    if kind == "table":
        return _object(value)
    if kind == "array":
        return [_plain(inner, item) for inner, item in value]
    return value


def compact(value: Any) -> str:
    """JSON on one line; in ASCII where the output may know no more."""
    encoding = (getattr(sys.stdout, "encoding", None) or "utf-8").lower()
    return json.dumps(value, separators=(",", ":"), ensure_ascii=encoding != "utf-8")
