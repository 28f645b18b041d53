"""Arguments that several jobs take."""

from __future__ import annotations

import argparse

import pytest

from pyspark_amqp_jobs.arguments import add_broker, add_html, add_input, broker_options, pair


def test_a_broker() -> None:
    parser = argparse.ArgumentParser()
    add_broker(parser)
    words = ["--uri", "amqps://h", "--password-file", "/f", "--option", "amqp.heartbeat=5"]
    assert broker_options(parser.parse_args(words)) == {
        "amqp.uri": "amqps://h",
        "amqp.passwordFile": "/f",
        "amqp.heartbeat": "5",
    }
    assert broker_options(parser.parse_args(["--password-env", "PW"]))["amqp.passwordEnv"] == "PW"


def test_pairs() -> None:
    assert pair("a=b=c") == ("a", "b=c")
    for text in ("a", "=b"):
        with pytest.raises(argparse.ArgumentTypeError):
            pair(text)


def test_one_input_only() -> None:
    parser = argparse.ArgumentParser()
    add_input(parser)
    add_html(parser)
    assert parser.parse_args(["--store", "/d"]).store == "/d"
    with pytest.raises(SystemExit):
        parser.parse_args([])
    with pytest.raises(SystemExit):
        parser.parse_args(["--store", "/d", "--queue", "q"])
