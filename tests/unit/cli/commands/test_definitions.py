"""Definitions to a file and back."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.served import Served


def test_export_and_import(served: Served, tmp_path: Path) -> None:
    served.ctl("set_policy", "p", "^lazy", '{"max-length":10}')
    path = tmp_path / "definitions.json"
    output = served.ctl("export_definitions", str(path))
    assert output.out == f'Exporting definitions in JSON to a file at "{path}" ...\n'
    document = json.loads(path.read_text())
    assert [row["name"] for row in document["policies"]] == ["p"]
    raw = served.ctl("export_definitions", "-").out
    assert not raw.endswith("\n")
    assert json.loads(raw) == document
    served.ctl("clear_policy", "p")
    output = served.ctl("import_definitions", str(path))
    assert (output.code, output.out) == (
        0,
        f'Importing definitions in JSON from a file at "{path}" ...\n'
        "Successfully started definition import."
        " This process is asynchronous and can take some time.\n",
    )
    assert "^lazy" in served.ctl("list_policies").out
    assert served.ctl("import_definitions", "-", stdin=raw).code == 0
    assert served.ctl("import_definitions", stdin=raw).code == 0


def test_refusals(served: Served, tmp_path: Path) -> None:
    path = tmp_path / "definitions.json"
    output = served.ctl("import_definitions", str(path))
    assert output.code == 65
    assert f"Bad argument: File {path} does not exist" in output.err
    path.write_text('{"a')
    output = served.ctl("import_definitions", str(path))
    assert output.code == 65
    assert output.err.startswith("Error:\nFailed to deserialise input (format: JSON) (error: ")
    path.write_text('{"queues":[{"name":"z","vhost":"nope"}]}')
    output = served.ctl("import_definitions", str(path))
    assert (output.code, output.err) == (69, 'Error:\n["no_such_vhost", "nope"]\n')
