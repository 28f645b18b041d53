from __future__ import annotations

from burrowmq.protocol import framing


def test_a_frame() -> None:
    assert framing.frame(3, 258, b"ab") == b"\x03\x01\x02\x00\x00\x00\x02ab\xce"


def test_octets_as_erlang_prints_them() -> None:
    assert framing.erlang_binary(b"") == "<<>>"
    assert framing.erlang_binary(b"GET /") == '<<"GET /">>'
    assert framing.erlang_binary(b'a"\\\n') == '<<"a\\"\\\\\\n">>'
    assert framing.erlang_binary(b"\x00A") == "<<0,65>>"
    assert framing.erlang_octets(b"AB") == "<<65,66>>"


def test_texts_about_frames() -> None:
    assert (
        framing.bad_frame(7, b"", "unknown_frame").text
        == "type 7, all octets = <<>>: unknown_frame"
    )
    assert framing.unexpected_frame(8, b"").text == "type 8, all octets = <<>>"
    assert (
        framing.unexpected_frame(2, b"x" * 16).text == 'type 2, all octets = <<"xxxxxxxxxxxxxxxx">>'
    )
    assert (
        framing.unexpected_frame(2, b"x" * 17).text
        == 'type 2, first 16 octets = <<"xxxxxxxxxxxxxxxx">>'
    )
