"""A compiled module that is older than its source says so, in a checkout; an installed one has nothing to compare."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.broker_process import ROOT

MODULES = (
    "protocol.codec._codec_c",
    "storage.record._record_c",
    "storage.files._sync_c",
    "broker.machine._pools_c",
    "broker.turn._send_c",
)


def checkout(directory: Path, module: str) -> Path:
    """A directory with the compiled module and its source; gives the source."""
    package, room, name = module.split(".")
    found = sorted((ROOT / package / room).glob(f"{name}.cpython-*.so"))
    if not found:
        pytest.skip(f"{module} is not compiled here (no C compiler?)")
    folder = directory / package / room
    folder.mkdir(parents=True)
    (directory / "burrowmq").mkdir()
    (directory / "burrowmq" / "__init__.py").touch()
    (directory / "burrowmq" / package).symlink_to(directory / package)
    shutil.copy(found[0], folder)
    shutil.copy(ROOT / "build_stamp.pxi", directory)
    for part in (ROOT / package / room).glob("*.pxi"):
        shutil.copy(part, folder)
    return Path(shutil.copy(ROOT / package / room / f"{name}.pyx", folder))


def import_it(directory: Path, module: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-I",
        "-c",
        f"import sys; sys.path.insert(0, '.'); import burrowmq.{module}",
    ]
    return subprocess.run(
        command, cwd=directory, capture_output=True, text=True, check=False, timeout=60
    )


def is_refused(done: subprocess.CompletedProcess[str]) -> bool:
    assert done.returncode
    return "RuntimeError" in done.stderr and "run `make build`" in done.stderr


@pytest.mark.parametrize("module", MODULES)
def test_a_module_that_is_older_than_its_source_is_not_imported(
    tmp_path: Path, module: str
) -> None:
    source = checkout(tmp_path, module)
    assert import_it(tmp_path, module).returncode == 0
    source.write_text(source.read_text() + "\n")
    assert is_refused(import_it(tmp_path, module))


@pytest.mark.parametrize("change", ["another text", "one more", "one less"])
def test_a_module_that_is_older_than_a_part_of_its_source_is_not_imported(
    tmp_path: Path, change: str
) -> None:
    part = checkout(tmp_path, MODULES[0]).with_name("_message_c.pxi")
    if change == "another text":
        part.write_text(part.read_text() + "\n")
    elif change == "one more":
        part.with_name("_more_c.pxi").write_text("\n")
    else:
        part.unlink()
    assert is_refused(import_it(tmp_path, MODULES[0]))


@pytest.mark.parametrize("missing", ["source", "stamp"])
def test_without_a_source_there_is_nothing_to_compare(tmp_path: Path, missing: str) -> None:
    source = checkout(tmp_path, MODULES[1])
    source.write_text("not what was compiled\n")
    (source if missing == "source" else tmp_path / "build_stamp.pxi").unlink()
    assert import_it(tmp_path, MODULES[1]).returncode == 0
