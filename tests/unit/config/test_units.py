"""burrowmq.config.units: each reader's values, limits and refusals."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from burrowmq.config import units


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *[
            ("5", 5),
            ("1k", 1000),
            ("2kB", 2000),
            ("3MB", 3_000_000),
            ("1G", 10**9),
            ("1TB", 10**12),
        ],
        *[
            ("1KiB", 1024),
            ("2Ki", 2048),
            ("1MiB", 2**20),
            ("1 GiB", 2**30),
            ("1TiB", 2**40),
            ("7B", 7),
        ],
    ],
)
def test_size_has_decimal_units_and_binary_ones(text: str, number: int) -> None:
    assert units.size(0)(text) == number


@pytest.mark.parametrize(
    ("text", "number"), [("4kb", 4096), ("1MB", 2**20), ("1KiB", 1024), ("9", 9)]
)
def test_binary_size_has_binary_units_only(text: str, number: int) -> None:
    assert units.binary_size(0)(text) == number


@pytest.mark.parametrize("text", ["", "2XB", "5.5GB", "MB", "-1", "1 2", "1iB", "1Bi"])
def test_what_is_not_a_size(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        units.size(0)(text)


def test_ranges_are_kept() -> None:
    assert units.integer(0, 9)("9") == 9
    for text in ("10", "-1"):
        with pytest.raises(ValueError, match="out of range"):
            units.integer(0, 9)(text)
    with pytest.raises(ValueError, match="cannot be converted to an integer"):
        units.integer(0)("64MB")
    for text in ("64MB", "30 m", "60s", "1.5h", "40%"):
        with pytest.raises(ValueError, match="write a whole number without a unit"):
            units.integer(0)(text)
    with pytest.raises(ValueError, match=r"'minus' cannot be converted to an integer$"):
        units.integer(0)("minus")
    with pytest.raises(ValueError, match="out of range"):
        units.size(0, 1000)("2k")


def test_a_frame_is_no_smaller_than_any_client_may_agree_to() -> None:
    assert [units.frame_size(text) for text in ("0", "4096", "4kb")] == [0, 4096, 4096]
    for text in ("1", "4095"):
        with pytest.raises(ValueError, match="out of range, it must be 0 or at least 4096"):
            units.frame_size(text)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for read in (units.readable, units.readable_file):
        with pytest.raises(ValueError, match="does not exist or cannot be read by the node"):
            read(str(tmp_path / "missing"))
    assert units.readable(str(tmp_path)) == str(tmp_path)
    with pytest.raises(ValueError, match="does not exist or cannot be read by the node"):
        units.readable_file(str(tmp_path))


def test_a_pipe_or_a_device_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for read in (units.readable, units.readable_file):
        for path in (str(tmp_path / "pipe"), "/dev/zero"):
            with pytest.raises(ValueError, match="does not exist or cannot be read by the node"):
                read(path)


def test_limit_knows_infinity() -> None:
    assert units.limit(0)("infinity") is None
    assert units.limit(0)("3") == 3


@pytest.mark.parametrize(
    ("text", "number"), [("0.4", 0.4), ("40%", 0.4), ("1", 1.0), ("12.5 %", 0.125)]
)
def test_ratio(text: str, number: float) -> None:
    assert units.ratio(0, 1)(text) == number


@pytest.mark.parametrize("text", ["1.1", "101%", "-1", "x", ".5", "%"])
def test_what_is_not_a_ratio(text: str) -> None:
    with pytest.raises(ValueError, match=r"ratio|out of range"):
        units.ratio(0, 1)(text)


def test_flag() -> None:
    assert [units.flag(text) for text in ("true", "on", "false", "off")] == [
        True,
        True,
        False,
        False,
    ]
    with pytest.raises(ValueError, match="cannot be converted to a flag"):
        units.flag("yes")


@pytest.mark.parametrize("name", ["classic", "quorum", "stream"])
def test_queue_types_have_two_names_each(name: str) -> None:
    assert units.queue_type(name) == units.queue_type(f"rabbit_{name}_queue") == name


@pytest.mark.parametrize("value", ["rabbit_quorum", "quorum_queue", "priority", ""])
def test_what_is_no_queue_type_is_refused_with_those_that_are(value: str) -> None:
    with pytest.raises(ValueError, match="is none of classic, quorum, stream"):
        units.queue_type(value)


def test_choice_lists_what_is_possible() -> None:
    assert units.choice("a", "b")("b") == "b"
    with pytest.raises(ValueError, match="acceptable values are: a, b"):
        units.choice("a", "b")("c")


def test_pattern() -> None:
    assert units.pattern("^a.*") == "^a.*"
    with pytest.raises(ValueError, match="not a regular expression"):
        units.pattern("(")


@pytest.mark.parametrize("text", ["", ":1", "1.2.3:1", "a b:1", "127.0.0.1:65536", "-x:1", "h:"])
def test_what_is_not_an_endpoint(text: str) -> None:
    with pytest.raises(ValueError):
        units.endpoint(text)


def test_an_address_of_ipv4_in_ipv6s_words_is_one_of_ipv4() -> None:
    assert units.endpoint("::ffff:127.0.0.1:5672") == units.Endpoint("127.0.0.1", 5672)
    assert units.endpoint("[::ffff:7f00:1]:5672") == units.Endpoint("127.0.0.1", 5672)


def test_an_address_of_a_link_has_its_interface() -> None:
    assert units.endpoint("fe80::1%eth0:5672") == units.Endpoint("fe80::1%eth0", 5672)


def test_http_path() -> None:
    assert units.http_path("/a/b-c") == "/a/b-c"
    with pytest.raises(ValueError, match="is not a path"):
        units.http_path("metrics")


@pytest.mark.parametrize("text", ["*", "https://a.example", "http://[::1]:8080", "HTTP://A:1"])
def test_origin(text: str) -> None:
    assert units.origin(text) == text.lower()


@pytest.mark.parametrize("text", ["a.example", "https://a/b", "https://", "ftp://a", "http://a b"])
def test_what_is_no_origin(text: str) -> None:
    with pytest.raises(ValueError, match="is not an origin"):
        units.origin(text)


@pytest.mark.parametrize(
    "read", [units.integer(0), units.size(0), units.ratio(0, 1), units.duration_ms(0), units.port]
)
def test_what_is_too_long_for_a_number_is_refused_in_few_words(read: units.Reader[object]) -> None:
    for digits in ("9" * 400 + "h", "9" * 5000):
        with pytest.raises(ValueError, match="too long for a number") as caught:
            read(digits)
        assert len(str(caught.value)) < 100


def test_a_duration_has_the_digits_of_other_numbers() -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        units.duration_ms(0)("²")


def test_octets_that_are_no_text() -> None:
    assert units.unicode_text("café") == "café"
    with pytest.raises(ValueError, match="not UTF-8"):
        units.unicode_text("a\udcff")
