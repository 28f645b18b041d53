"""An installation beside somebody's project that has a `config`, a `storage` and so on of its own."""

from __future__ import annotations

import os
import sysconfig
from pathlib import Path

import pytest

from tests.support.broker_process import BrokerProcess

from .conftest import ROOT, Built, environment, install, run

pytestmark = pytest.mark.needs_server
THEIRS = 'raise RuntimeError("this is the project\'s own " + __name__)\n'
FOLDERS = (
    "broker",
    "cluster",
    "storage",
    "cli",
    "protocol",
    "management",
    "offline",
    "embedded",
    "bench",
    "scripts",
)


@pytest.fixture(scope="session")
def installed(interpreted: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the commands in an environment that has both wheels."""
    python = environment(tmp_path_factory.mktemp("installed") / "env")
    wheels = [str(interpreted.archive(name)) for name in ("burrowmq", "pyspark_amqp")]
    install(python, "--no-deps", *wheels)
    # What the server depends on is taken from where this test runs; such a line does not bring the checkout along.
    (packages,) = python.parents[1].glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = "import burrowmq.broker, pyspark_amqp as p; print(burrowmq.broker.__file__, p.__file__)"
    for path in run(str(python), "-c", where, folder=packages.parent).split():
        assert path.startswith(str(packages))
    return python.parent


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project whose modules must not be taken for the server's."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "config.py").write_text(THEIRS)
    for name in FOLDERS:
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(THEIRS)
    return folder


@pytest.mark.parametrize(
    "program",
    [["burrowmq-server"], ["python", "-m", "burrowmq"], ["python", "-m", "burrowmq.broker"]],
)
def test_a_node_and_its_commands(
    program: list[str], installed: Path, project: Path, tmp_path: Path
) -> None:
    node = BrokerProcess(
        tmp_path / "data",
        program=[str(installed / program[0]), *program[1:]],
        folder=project,
        environment={"PYTHONPATH": str(project)},
    )
    path = {"PYTHONPATH": str(project)}
    node.start()
    try:
        for command in (["burrowctl"], ["python", "-m", "burrowmq.cli"]):
            words = [str(installed / command[0]), *command[1:], "--data-dir", str(node.data_dir)]
            assert str(node.running().pid) in run(*words, "status", folder=project, **path)
    finally:
        node.close()
    words = [str(installed / "burrowmq-store"), "--data-dir", str(node.data_dir), "check"]
    run(*words, folder=project, **path)


def test_spark(installed: Path, project: Path) -> None:
    path = {"PYTHONPATH": str(project)}
    modules = "import pyspark_amqp, pyspark_amqp_store, pyspark_amqp_jobs.__main__"
    run(str(installed / "python"), "-c", modules, folder=project, **path)
    run(str(installed / "burrowmq-spark"), "--help", folder=project, **path)


def test_the_project_keeps_its_names(installed: Path, project: Path) -> None:
    """Even where the project is not the first to be asked."""
    names = ("config", *FOLDERS)
    code = f"import sys; sys.path[:] = [p for p in sys.path if p] + [{str(project)!r}]\n" + "".join(
        f"try:\n  import {name}\nexcept RuntimeError as error:\n  print(error)\n" for name in names
    )
    printed = run(str(installed / "python"), "-c", code, folder=Path(os.sep))
    assert printed.splitlines() == [f"this is the project's own {name}" for name in names]
    assert str(ROOT) not in printed
