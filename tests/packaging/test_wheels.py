"""What the two distributions hold, and that each is built and installed without the other."""

from __future__ import annotations

import configparser
import re
import sys
import sysconfig
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

import pytest

import burrowmq

from .conftest import OFFLINE, PIP, ROOT, SPARK, Built, environment, install, run

MODULES = (
    "protocol/codec/_codec_c",
    "storage/record/_record_c",
    "storage/files/_sync_c",
    "broker/machine/_pools_c",
    "broker/turn/_send_c",
)
SUFFIX = str(sysconfig.get_config_var("EXT_SUFFIX"))


def members(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def metadata(wheel: Path, name: str) -> str:
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (path for path in archive.namelist() if path.endswith(f".dist-info/{name}"))
        return archive.read(path).decode()


def scripts(wheel: Path) -> set[str]:
    parser = configparser.ConfigParser()
    parser.read_string(metadata(wheel, "entry_points.txt"))
    return set(parser["console_scripts"])


def modules_of(*folders: str) -> set[str]:
    """Return the modules that stand below these folders of the checkout, as paths from its top."""
    return {str(path.relative_to(ROOT)) for each in folders for path in (ROOT / each).rglob("*.py")}


def server_modules() -> set[str]:
    linked = [path.name for path in (ROOT / "burrowmq").iterdir() if path.is_symlink()]
    below = {f"burrowmq/{path}" for path in modules_of(*linked)}
    return below | {f"burrowmq/{path.name}" for path in (ROOT / "burrowmq").glob("*.py")}


def codec_parts() -> set[str]:
    """Return what the compiled codec includes, as paths from the top of the checkout."""
    return {str(path.relative_to(ROOT)) for path in (ROOT / "protocol").rglob("*.pxi")}


def test_the_server_takes_one_name(interpreted: Built) -> None:
    names = members(interpreted.archive("burrowmq"))
    assert {name.split("/")[0] for name in names} == {
        "burrowmq",
        f"burrowmq-{burrowmq.__version__}.dist-info",
    }
    own = {name for name in names if name.startswith("burrowmq/")}
    typing = {f"burrowmq/{module}.{end}" for module in MODULES for end in ("pyi", "pyx")}
    typing |= {"burrowmq/__init__.pyi", "burrowmq/embedded/__init__.pyi"}
    parts = {f"burrowmq/{path}" for path in codec_parts()}
    pages = ROOT / "management" / "ui" / "static"
    shown = {f"burrowmq/{path.relative_to(ROOT)}" for path in pages.rglob("*") if path.is_file()}
    assert own == server_modules() | typing | parts | shown | {"burrowmq/py.typed"}


def test_spark_has_the_second_one(interpreted: Built) -> None:
    names = members(interpreted.archive("pyspark_amqp"))
    own = {name for name in names if ".dist-info/" not in name}
    assert own == modules_of("pyspark_amqp", "pyspark_amqp_jobs", "pyspark_amqp_store")


def test_commands(interpreted: Built) -> None:
    assert scripts(interpreted.archive("burrowmq")) == {
        "burrowmq-server",
        "burrowctl",
        "burrowmq-store",
    }
    assert scripts(interpreted.archive("pyspark_amqp")) == {"burrowmq-spark"}


def test_the_extra_asks_for_the_second_one_in_its_own_version(interpreted: Built) -> None:
    server = metadata(interpreted.archive("burrowmq"), "METADATA")
    spark = metadata(interpreted.archive("pyspark_amqp"), "METADATA")
    (version,) = re.findall(r"^Version: (.*)$", spark, re.MULTILINE)
    wanted = re.findall(r"^Requires-Dist: (.*); extra == \"spark\"$", server, re.MULTILINE)
    assert wanted == [f"pyspark-amqp[spark]=={version}"]
    assert version == burrowmq.__version__


def test_spark_needs_nothing_of_the_server(interpreted: Built, tmp_path: Path) -> None:
    """Installed with its dependencies, of which there are none, into an empty environment."""
    python = environment(tmp_path / "env")
    install(python, str(interpreted.archive("pyspark_amqp")))
    code = "import pyspark_amqp, pyspark_amqp_store, sys; print(*sys.modules)"
    loaded = run(str(python), "-c", code, folder=tmp_path).split()
    assert not {"burrowmq", "uvloop", "aiohttp", "Cython", "structlog"} & set(loaded)
    assert "Jobs on queues" in run(str(python.parent / "burrowmq-spark"), "--help", folder=tmp_path)


@pytest.mark.parametrize("name", ["burrowmq", "pyspark_amqp"])
def test_a_source_distribution_has_every_module_once(sources: Built, name: str) -> None:
    with tarfile.open(sources.archive(name)) as archive:
        files = [entry for entry in archive.getmembers() if not entry.isdir()]
        assert all(entry.isfile() for entry in files)  # a link would lead out of it
    paths = [entry.name.partition("/")[2] for entry in files]
    twice = [path for path, count in Counter(paths).items() if count > 1]
    assert not twice
    expected = {"burrowmq": server_modules(), "pyspark_amqp": modules_of(*spark_folders())}[name]
    assert {path for path in paths if path.endswith(".py")} - {"setup.py"} == expected


def test_the_source_distribution_has_what_the_compiled_modules_include(sources: Built) -> None:
    with tarfile.open(sources.archive("burrowmq")) as archive:
        paths = {name.partition("/")[2] for name in archive.getnames()}
    included = {path for path in paths if path.endswith(".pxi")}
    assert included == {"build_stamp.pxi"} | {f"burrowmq/{path}" for path in codec_parts()}


def spark_folders() -> list[str]:
    return [path.name for path in (ROOT / SPARK).iterdir() if path.is_symlink() and path.is_dir()]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_compiler_makes_the_compiled_modules_of_the_source(
    sources: Built, tmp_path: Path
) -> None:
    run(*PIP, "wheel", *OFFLINE, str(sources.archive("burrowmq")), folder=tmp_path)
    assert compiled(Built(tmp_path)) == {f"burrowmq/{module}{SUFFIX}" for module in MODULES}


@pytest.mark.long
@pytest.mark.timeout(600)
def test_make_wheels(checkout: Path, interpreted: Built) -> None:
    """What the folders of earlier builds hold, a module that has since been removed for one, is not in them."""
    machine = sysconfig.get_platform()
    tag = f"lib.{machine}-{sys.implementation.cache_tag}"
    for old in (f"build/{tag}/burrowmq/removed.py", f"{SPARK}/build/lib/pyspark_amqp/removed.py"):
        (checkout / old).parent.mkdir(parents=True, exist_ok=True)
        (checkout / old).touch()
    # The environment that runs this test stands for the one that `make` would prepare.
    tools = Path(sys.executable).parents[1]
    ready = ["-o", f"{tools}/.stamp-run", f"VENV={tools}"]
    run("make", *ready, "wheels", folder=checkout)
    built = Built(checkout / "dist")
    assert compiled(built) == {f"burrowmq/{module}{SUFFIX}" for module in MODULES}
    for name in ("burrowmq", "pyspark_amqp"):
        without = set(members(built.archive(name))) - compiled(built)
        assert without == set(members(interpreted.archive(name)))


def compiled(built: Built) -> set[str]:
    return {name for name in members(built.archive("burrowmq")) if name.endswith(".so")}


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_extra_is_found_beside_the_server(interpreted: Built, tmp_path: Path) -> None:
    """The rest of it comes from the package index, which this asks."""
    words = ["install", "--dry-run", "--ignore-installed", "--find-links", str(interpreted.folder)]
    pip = [word for word in PIP if word != "--quiet"]
    printed = run(*pip, *words, "burrowmq[spark]", folder=tmp_path)
    (would,) = (line for line in printed.splitlines() if line.startswith("Would install "))
    version = burrowmq.__version__
    assert {f"burrowmq-{version}", f"pyspark-amqp-{version}"} <= set(would.split())
