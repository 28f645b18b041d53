"""Values as text."""

from __future__ import annotations

from burrowmq.cli import terms

TABLE = {"table": [["x-ttl", "signedint", 5], ["t", "table", [["b", "bool", True]]],
                   ["l", "array", [["longstr", "x"], ["table", [["k", "void", None]]]]]]}  # fmt: skip


def test_in_tables() -> None:
    assert terms.text(TABLE) == '[{"x-ttl",5},{"t",[{"b",true}]},{"l",["x",[{"k",undefined}]]}]'
    assert terms.text({"table": []}) == "[]"
    assert terms.text({"max-length": 2}) == '[{"max-length",2}]'
    assert terms.text({"tuple": [0, 9, 1]}) == "{0,9,1}"
    assert terms.text(["a", "b"]) == "[a, b]"
    assert (terms.text(None), terms.text(True), terms.text(1.5)) == ("", "true", "1.5")
    assert terms.text("esc\x1b[31m") == "esc\\033[31m"


def test_as_erlang() -> None:
    assert (
        terms.erlang("arguments", {"table": [["k", "longstr", "v"]]})
        == '{arguments,[{<<"k">>,longstr,<<"v">>}]}'
    )
    assert terms.erlang("state", "running") == "{state,running}"
    assert terms.erlang("pid", "<a@b.1.2.0>") == "{pid,<a@b.1.2.0>}"
    assert terms.erlang("tags", ["administrator"]) == "{tags,[administrator]}"


def test_as_json() -> None:
    assert terms.jsonable(TABLE) == {"x-ttl": 5, "t": {"b": True}, "l": ["x", {"k": None}]}
    assert terms.jsonable({"tuple": [0, 9, 1]}) == [0, 9, 1]
    assert terms.jsonable([None, {"a": None}]) == ["", {"a": ""}]
