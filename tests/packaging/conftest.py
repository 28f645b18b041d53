"""Distributions that the tests of this folder share, built from a copy of the checkout without what was built in it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.image_build import copy_context

ROOT = Path(__file__).resolve().parents[2]
SPARK = "distributions/pyspark-amqp"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-input"]
# The build's own requirements are in the environment of the checkout; nothing is fetched.
OFFLINE = ["--no-deps", "--no-index", "--no-build-isolation"]
BUILD_SDIST = "import setuptools.build_meta as b, sys; b.build_sdist(sys.argv[1])"


def run(*command: str, folder: Path, **environment: str) -> str:
    """Run a command; return what it printed, or fail with it."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command,
        cwd=folder,
        env={**inherited, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.fail(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def environment(folder: Path) -> Path:
    """Make an empty environment; return its Python."""
    run(sys.executable, "-m", "venv", "--without-pip", str(folder), folder=folder.parent)
    return folder / "bin" / "python"


def install(python: Path, *words: str) -> None:
    """Install into an environment without asking an index."""
    run(*PIP, "--python", str(python), "install", "--no-index", *words, folder=python.parent)


@dataclass(frozen=True)
class Built:
    """A folder with one archive of each of the two distributions."""

    folder: Path

    def archive(self, name: str) -> Path:
        """Return the archive of `burrowmq` or `pyspark_amqp`."""
        (found,) = self.folder.glob(f"{name}-*")
        return found


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the checkout as a fresh clone of it would be, links included."""
    target = tmp_path_factory.mktemp("checkout") / "burrowmq"
    copy_context(ROOT, target)
    return target


@pytest.fixture(scope="session")
def sources(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Return the source distributions."""
    folder = tmp_path_factory.mktemp("sources")
    for project in (checkout, checkout / SPARK):
        run(sys.executable, "-c", BUILD_SDIST, str(folder), folder=project)
    return Built(folder)


@pytest.fixture(scope="session")
def interpreted(sources: Built, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Return the wheels that a machine without a C compiler makes of the source distributions."""
    folder = tmp_path_factory.mktemp("interpreted")
    archives = [str(sources.archive(name)) for name in ("burrowmq", "pyspark_amqp")]
    run(*PIP, "wheel", *OFFLINE, *archives, folder=folder, CC="/bin/false")
    return Built(folder)
