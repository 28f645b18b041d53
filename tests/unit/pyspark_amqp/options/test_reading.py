"""Option texts become values; whatever is wrong is told together, and nothing secret is repeated."""

from __future__ import annotations

import pickle

import pytest

from pyspark_amqp.options import BadOptions, OptionReader


def test_names_count_in_any_case() -> None:
    options = OptionReader({"POLLTIMEOUTMS": "5"})
    assert options.number("pollTimeoutMs", None, least=0, most=10) == 5
    options.finish("read")


@pytest.mark.parametrize(
    ("text", "octets"), [("65536", 65536), ("64k", 65536), ("2M", 2 << 20), ("1gb", 1 << 30)]
)
def test_sizes(text: str, octets: int) -> None:
    assert OptionReader({"a": text}).size("a", None) == octets


@pytest.mark.parametrize(
    ("text", "seconds"), [("250", 0.25), ("250ms", 0.25), ("2s", 2), ("1m", 60), ("1_000", 1)]
)
def test_milliseconds(text: str, seconds: float) -> None:
    assert OptionReader({"a": text}).milliseconds("a", 9.0) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("90s", 90), ("12h", 43200), ("7d", 604800)]
)
def test_durations(text: str, seconds: float) -> None:
    assert OptionReader({"a": text}).duration("a", 9.0) == seconds


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a", ("a",)),
        (" a, b ,a", ("a", "b")),
        ('["a,b", "c"]', ("a,b", "c")),
        ('["", " a", "a ", "a"]', (" a", "a ", "a")),
    ],
)
def test_lists_of_names(text: str, names: tuple[str, ...]) -> None:
    assert OptionReader({"queue": text}).names("queue") == names


def test_all_that_is_wrong_is_told_at_once() -> None:
    options = OptionReader(
        {
            "number": "many",
            "size": "0",
            "time": "soon",
            "duration": "10",
            "flag": "yes",
            "choice": "red",
            "names": '["a"',
            "also": ",",
            "consumersPerQeue": "2",
            "far": "1",
        }
    )
    assert options.number("number", 7, least=1, most=9) == 7
    assert options.size("size", 1) == 1
    assert options.milliseconds("time", 1.0) == 1.0
    assert options.duration("duration", 1.0) == 1.0
    assert options.flag("flag", default=True)
    assert options.choice("choice", ("green", "blue"), "blue") == "blue"
    assert options.names("names") == options.names("also") == ()
    assert options.required("missing", "it is needed") == ""
    assert options.number("consumersPerQueue", 1, least=1, most=2) == 1
    with pytest.raises(BadOptions) as raised:
        options.finish("read")
    text = str(raised.value)
    assert text.startswith("read: 11 options are wrong\n  - option 'number': 'many' is no whole")
    assert "option 'consumersperqeue' is not known here; did you mean 'consumersPerQueue'?" in text
    assert "option 'far' is not known here" in text
    assert len(raised.value.problems) == 11
    assert str(pickle.loads(pickle.dumps(raised.value))) == text


def test_one_problem_is_one_line() -> None:
    with pytest.raises(BadOptions, match=r"^read: option 'x' is not known here$"):
        OptionReader({"x": "1"}).finish("read")


def test_options_of_other_parts_are_let_through() -> None:
    OptionReader({"checkpointlocation": "/tmp"}).finish("write", elsewhere=["checkpointLocation"])


def test_secrets_are_not_repeated() -> None:
    options = OptionReader({})
    options.refuse("amqp.passwordFile", "hunter2", "no file")
    assert "hunter2" not in options.problems[0]
