"""The examples of the documentation run as they are written, but for where broker and backup are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.spark.conftest import ready_count
from tests.support.broker_process import ROOT
from tests.support.store_on_disk import StoreOnDisk, message

pytestmark = [
    pytest.mark.needs_server,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(300),
]


def run(page: str, folder: Path, place: tuple[str, str]) -> str:
    """Run a page's Python in a process of its own and return what it prints."""
    text = (ROOT / "docs" / page).read_text()
    code = "\n\n".join(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert place[0] in code
    script = folder / "page.py"
    script.write_text(code.replace(*place))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_the_page_on_queues(url: str, tmp_path: Path) -> None:
    said = run("spark.md", tmp_path, ("amqp://localhost", url))
    assert "|orders| 1000|" in said
    assert ready_count(url, "orders") == 0


def test_the_page_on_stores(tmp_path: Path) -> None:
    store = tmp_path / "store"
    disk = StoreOnDisk(store)
    disk.publish("orders", [message(b"x") for _ in range(7)])
    disk.commit()
    assert "|    NULL|    7|" in run("spark-store.md", tmp_path, ("/backups/monday", str(store)))
