"""The notebook of the documentation runs, from its first cell to its last."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.broker_process import ROOT

pytestmark = [
    pytest.mark.needs_server,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(300),
]


def test_the_notebook_runs(url: str, tmp_path: Path) -> None:
    found = json.loads((ROOT / "docs" / "spark-example.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in found["cells"] if cell["cell_type"] == "code"]
    script = tmp_path / "notebook.py"
    script.write_text("\n\n".join(cells))
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={**os.environ, "AMQP_URI": url, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "1000|" in done.stdout
