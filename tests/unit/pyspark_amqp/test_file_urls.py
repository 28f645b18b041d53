"""Paths that are written as URLs."""

from __future__ import annotations

import pytest

from pyspark_amqp.file_urls import path_in


@pytest.mark.parametrize("location", ["file:/d/e", "file:///d/e", "FILE:/d/e"])
def test_a_url_of_a_file_names_a_path(location: str) -> None:
    assert path_in(location) == "/d/e"


@pytest.mark.parametrize(
    "location", ["/d", "d", "file", "file:d", "file://host/d", "s3://bucket/d", "/d/file:/e", ""]
)
def test_what_is_no_url_of_a_file_here_names_none(location: str) -> None:
    assert path_in(location) is None
