"""Definitions to a file and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.served import Served
from tests.support.served_cluster import serving_with_cluster


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


@pytest.mark.parametrize("command", ["export_definitions", "import_definitions"])
def test_the_format_is_json(served: Served, tmp_path: Path, command: str) -> None:
    path = tmp_path / "definitions.json"
    path.write_text("{}")
    assert served.ctl(command, str(path), "--format", "JSON").code == 0
    before = path.read_text()
    for word in ("erlang", "yaml"):
        output = served.ctl(command, str(path), "--format", word)
        assert output.code == 65
        assert f"Bad argument: Format should be json, not {word}" in output.err
    assert path.read_text() == before


def test_mirrored_queues_are_taken_over_as_quorum_queues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = {"vhost": "/", "name": "ha", "pattern": "^q", "definition": {"ha-mode": "all"}}
    queues = [{"vhost": "/", "name": name, "durable": True} for name in ("q", "other")]
    document = json.dumps({"policies": [policy], "queues": queues})
    with serving_with_cluster(tmp_path, monkeypatch) as cluster:
        served = cluster.served
        output = served.ctl("import_definitions", "--mirrored-as", "quorum", stdin=document)
        assert output.code == 0, output.err
        assert served.ctl("-q", "list_queues", "name", "type").out.splitlines()[1:] == [
            "other\tclassic",
            "q\tquorum",
        ]
        refused = served.api("POST", "/api/definitions?mirrored_as=stream", {})
        assert (refused.status, refused.body["reason"]) == (
            400,
            "mirrored_as is classic or quorum, not stream",
        )
        (logged,) = served.bench.observer.named("policy_without_effect")
        assert "cluster.mirrored = quorum" in logged[2]


def test_without_a_cluster_that_is_refused(served: Served) -> None:
    output = served.ctl("import_definitions", "--mirrored-as", "quorum", stdin="{}")
    assert (output.code, "cluster.urls is not set" in output.err) == (69, True)
