"""Values as text."""

from __future__ import annotations

import pytest

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


def test_what_is_escaped_has_three_digits_an_octet() -> None:
    assert terms.text("a\u202e7") == "a\\342\\200\\2567"
    assert terms.text("c\x85\udcff") == "c\\302\\205\\377"
    assert terms.text("\ud800") == "\\355\\240\\200"


@pytest.mark.parametrize(
    ("value", "shown"), [(1e20, "1.0e20"), (1.25e-7, "1.25e-7"), (1000.0, "1.0e3"), (1.5, "1.5")]
)
def test_numbers_are_erlangs(value: float, shown: str) -> None:
    assert terms.text({"table": [["x", "double", value]]}) == f'[{{"x",{shown}}}]'


def test_arrays_within_arrays() -> None:
    inner = ["array", [["bool", True], ["void", None], ["array", [["longstr", "s"]]]]]
    table = {"table": [["x", "array", [["signedint", 1], inner]]]}
    assert terms.text(table) == '[{"x",[1,[true,undefined,["s"]]]}]'
    assert terms.jsonable(table) == {"x": [1, [True, None, ["s"]]]}
    assert terms.erlang("arguments", table) == (
        '{arguments,[{<<"x">>,array,[{signedint,1},'
        '{array,[{bool,true},{void,undefined},{array,[{longstr,<<"s">>}]}]}]}]}'
    )


def test_as_erlang() -> None:
    assert (
        terms.erlang("arguments", {"table": [["k", "longstr", "v"]]})
        == '{arguments,[{<<"k">>,longstr,<<"v">>}]}'
    )
    assert terms.erlang("state", "running") == "{state,running}"
    assert terms.erlang("pid", "<a@b.1.2.0>") == "{pid,<a@b.1.2.0>}"
    assert terms.erlang("tags", ["administrator"]) == "{tags,[administrator]}"


def test_atoms_stand_in_quotes_where_erlang_needs_them() -> None:
    """As RabbitMQ 3.10.8 lists a user with these tags."""
    tags = "my-tag,Admin,x_y,a@b,if,cond,maybe,x1,1a,_a,a.b,a b,\x1b[31m,\x7f,a\x01,\\,a'b,a\"b,\u00df,\u65e5"
    assert terms.erlang("tags", tags.split(",")) == (
        r"{tags,['my-tag','Admin',x_y,a@b,'if','cond',maybe,x1,'1a','_a','a.b',"
        r"""'a b','\e[31m','\d','a\001','\\','a\'b','a"b','Ã\237','æ\227¥']}"""
    )
    assert terms.erlang("type", "x-recent-history") == "{type,'x-recent-history'}"
    assert terms.erlang("leader", "rabbit@my-host") == "{leader,'rabbit@my-host'}"


def test_binaries_of_erlang_are_octets() -> None:
    assert terms.erlang("name", "") == "{name,<<>>}"
    assert terms.erlang("name", "\x1b\n") == '{name,<<"\\e\\n">>}'
    assert terms.erlang("name", "\u00fc") == '{name,<<"\u00c3\u00bc">>}'
    assert terms.erlang("name", "\u4e00") == "{name,<<228,184,128>>}"
    octets = {"octets": [["k", "binary", "\xff\x00"], ["v", "void", None]]}
    assert terms.erlang("arguments", octets) == (
        '{arguments,[{<<"k">>,binary,<<255,0>>},{<<"v">>,void,undefined}]}'
    )


def test_as_json() -> None:
    assert terms.jsonable(TABLE) == {"x-ttl": 5, "t": {"b": True}, "l": ["x", {"k": None}]}
    assert terms.jsonable({"tuple": [0, 9, 1]}) == [0, 9, 1]
    assert terms.jsonable([None, {"a": None}]) == ["", {"a": ""}]
