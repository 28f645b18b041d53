"""The table of two stores: medians, and how one compares with the other."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="needs Spark: run by `make test-spark`")
pytest.importorskip("moto", reason="needs moto: run by `make test-spark`")

from bench.spark_spool import FOLDER, SERVER, table


def test_medians_are_compared() -> None:
    found = table({"slow": {FOLDER: [1.0, 2.0, 9.0], SERVER: [2.5, 2.4, 8.0]}})
    assert found.splitlines()[-1].endswith("| 2.00 s | 2.50 s | 1.25 x | 80 % |")
