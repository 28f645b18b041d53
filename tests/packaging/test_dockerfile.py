"""The Dockerfile's steps, carried out in their order in folders that stand for the image's (there is no engine here)."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.image_build import Instruction, copy_context, ignored, stages

from .conftest import ROOT, run

DOCKERFILE = (ROOT / "Dockerfile").read_text()
SYSTEM = ("apt-get ", "groupadd ")  # the machine's own packages and users
COMMANDS = (
    "burrowmq-server",
    "rabbitmq-server",
    "burrowmq-store",
    "burrowctl",
    "rabbitmqctl",
    "rabbitmq-diagnostics",
    "rabbitmq-plugins",
    "rabbitmq-queues",
    "rabbitmq-upgrade",
)


class Image:
    """The folders of one build: what stands for `/`, and the context that COPY takes from."""

    def __init__(self, folder: Path) -> None:
        self.context = folder / "context"
        self.root = folder / "image"
        self.folder = "/"
        copy_context(ROOT, self.context)
        for path in ("opt", "src", "usr/local/bin"):
            (self.root / path).mkdir(parents=True)
        # The images' `python` is the one that everything runs with.
        self.programs = folder / "programs"
        self.programs.mkdir()
        (self.programs / "python").symlink_to(sys.executable)

    def here(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def carry_out(self, instruction: Instruction) -> None:
        words = instruction.text.split()
        match instruction.name:
            case "WORKDIR":
                self.folder = instruction.text
                self.here(self.folder).mkdir(parents=True, exist_ok=True)
            case "COPY":
                self.copy(words)
            case "RUN" if not instruction.text.startswith(SYSTEM):
                command = instruction.text
                for path in ("/opt/burrowmq", "/usr/local/bin"):
                    command = command.replace(path, str(self.here(path)))
                search = os.pathsep.join([str(self.programs), os.environ["PATH"]])
                folder = self.here(self.folder)
                run("/bin/sh", "-c", command, folder=folder, PATH=search)
            case (
                "FROM"
                | "RUN"
                | "ENV"
                | "VOLUME"
                | "EXPOSE"
                | "STOPSIGNAL"
                | "HEALTHCHECK"
                | "ENTRYPOINT"
                | "CMD"
            ):
                pass
            case _:
                pytest.fail(f"{instruction} is not known here")

    def copy(self, words: list[str]) -> None:
        if words[0].startswith("--from="):
            assert words[1] == words[2]
            assert self.here(words[1]).is_dir()  # one root stands for both stages
            return
        *given, target = words
        target = os.path.join(self.folder, target)
        for name in given:
            source = self.context / name
            if source.is_dir():
                shutil.copytree(source, self.here(target), symlinks=True, dirs_exist_ok=True)
                continue
            self.here(target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, self.here(target))


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_the_steps_make_an_environment_that_runs(tmp_path: Path) -> None:
    image = Image(tmp_path)
    build, last = stages(DOCKERFILE)
    for instruction in build:
        image.carry_out(instruction)
    # The second image has nothing of the first but what is copied from it.
    shutil.rmtree(image.here("/src"))
    image.folder = "/"
    for instruction in last:
        image.carry_out(instruction)

    python = str(image.here("/opt/burrowmq/bin/python"))
    code = (
        "import burrowmq.protocol.codec as c, burrowmq.storage.record as r; print(c.NAME, r.NAME)"
    )
    assert run(python, "-c", code, folder=tmp_path, BURROWMQ_PURE="").split() == ["compiled"] * 2
    for command in COMMANDS:
        run(str(image.here("/usr/local/bin") / command), "--help", folder=tmp_path)
    assert image.here("/usr/local/bin/docker-entrypoint.sh").stat().st_mode & 0o111


def test_the_check_of_the_compiled_modules_does_not_run_beside_the_source() -> None:
    """In /src the folders of the source would be found first, which have no compiled modules."""
    (step,) = (each.text for each in stages(DOCKERFILE)[0] if "_codec_c" in each.text)
    assert "(cd / && /opt/burrowmq/bin/python -c 'import burrowmq.protocol.codec._codec_c" in step


@pytest.mark.parametrize(
    "path",
    [
        "protocol/codec/_codec_c.cpython-311-x86_64-linux-gnu.so",
        "storage/disk/__pycache__/threads.cpython-311.pyc",
        "burrowmq.egg-info/SOURCES.txt",
        "distributions/pyspark-amqp/pyspark_amqp.egg-info/SOURCES.txt",
        "distributions/pyspark-amqp/build/lib/pyspark_amqp/__init__.py",
        "tests/conftest.py",
        ".git/HEAD",
    ],
)
def test_what_was_built_here_is_not_sent_to_the_builder(path: str) -> None:
    assert ignored(path, (ROOT / ".dockerignore").read_text().split())


@pytest.mark.parametrize(
    "path", ["burrowmq/storage", "burrowmq/py.typed", "storage/disk/threads.py", "build_stamp.pxi"]
)
def test_what_the_image_is_built_from_is(path: str) -> None:
    assert os.path.lexists(ROOT / path)
    assert not ignored(path, (ROOT / ".dockerignore").read_text().split())
