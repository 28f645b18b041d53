"""burrowmq.config.erlang_file: files of Erlang terms are recognised, and what to write instead is said."""

from __future__ import annotations

import pytest

from burrowmq.config import erlang_file

OLD = """%% -*- mode: erlang -*-
[
 {rabbit,
  [{heartbeat, 30},  % seconds
   {default_pass, <<"hush">>},
   {default_user, <<"alice">>}]},
 {kernel, [{net_ticktime, 60}]}
].
"""


@pytest.mark.parametrize("text", [OLD, "[].", "  [ ].\n", "[{rabbit, []}]."])
def test_terms(text: str) -> None:
    assert erlang_file.is_erlang(text)


@pytest.mark.parametrize("text", ["", "heartbeat = 30", "[section]\nheartbeat = 30", "# [{}]"])
def test_no_terms(text: str) -> None:
    assert not erlang_file.is_erlang(text)


def test_empty_files_set_nothing() -> None:
    assert erlang_file.is_empty("% nothing\n[].\n")
    assert erlang_file.is_empty("")
    assert not erlang_file.is_empty(OLD)


def test_what_to_write_instead_shows_no_secret() -> None:
    text = erlang_file.instead(OLD, lambda name: name in {"heartbeat", "default_pass"})
    assert text == " (such as heartbeat = 30, default_pass = ...)"
    assert erlang_file.instead(OLD, lambda name: False) == ""
