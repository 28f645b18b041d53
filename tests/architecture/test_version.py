"""The version of a release stands in three files: all of them say the same (docs/releasing.md)."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import burrowmq

ROOT = Path(__file__).resolve().parents[2]
SERVER = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SPARK = tomllib.loads(
    (ROOT / "distributions" / "pyspark-amqp" / "pyproject.toml").read_text(encoding="utf-8")
)["project"]


def test_both_distributions_are_of_the_same_version() -> None:
    assert SPARK["version"] == burrowmq.__version__


def test_the_spark_extra_asks_for_the_distribution_of_this_version() -> None:
    assert SERVER["optional-dependencies"]["spark"] == [
        f"pyspark-amqp[spark]=={burrowmq.__version__}"
    ]


def test_the_version_has_three_numbers() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", burrowmq.__version__)
