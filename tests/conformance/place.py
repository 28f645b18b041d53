"""Where another project's suite runs, and what it came to.

State: a suite's scratch folder with its log. Callers: the modules of suites.
Invariants: a suite installs into its folder only, and what it ran and printed is in the folder's log.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

from tests.support.patience import patient

HERE = Path(__file__).parent
DRIVERS = HERE / "drivers"
RANK = {"passed": 0, "skipped": 1, "failed": 2}
GO_CASE = re.compile(r"^ *--- (PASS|FAIL|SKIP): (\S+)", re.MULTILINE)
RUST_RESULT = re.compile(
    r"^test result:.* (\d+) passed; (\d+) failed; (\d+) ignored;.* (\d+) filtered out", re.MULTILINE
)


@dataclass
class Count:
    """What a suite came to."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: tuple[str, ...] = ()


NOT_DOWNLOADED = Count(failed=1, failures=("the module was not downloaded",))


class Place:
    """A suite's scratch folder and the broker that it talks to."""

    def __init__(self, folder: Path, host: str, ports: tuple[int, int, int]) -> None:
        self.folder = folder
        self.host = host
        self.port, self.management_port, self.prometheus_port = ports
        # The vhost is spelled out: some clients read a bare "/" as the empty name.
        self.url = f"amqp://guest:guest@{host}:{self.port}/%2F"
        self.api = f"http://guest:guest@{host}:{self.management_port}/api/"

    def run(self, *command: str, timeout_s: int, cwd: Path | None = None, **env: str) -> str:
        """Run a command, keep its output in the folder's log, return it."""
        done = subprocess.run(
            command,
            cwd=cwd or self.folder,
            env={**os.environ, **env},
            text=True,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=patient(timeout_s),
        )
        with (self.folder / "log").open("a") as log:
            log.write(f"$ {' '.join(command)}\n{done.stdout}\n")
        return done.stdout

    def environment_with(self, *requirements: str) -> str:
        """Make a virtual environment and return its interpreter."""
        self.run(sys.executable, "-m", "venv", "venv", timeout_s=120)
        python = str(self.folder / "venv" / "bin" / "python")
        self.run(python, "-m", "pip", "install", "-q", *requirements, timeout_s=600)
        return python

    def source_of(self, python: str, name: str, version: str) -> Path:
        """Download and unpack a source distribution."""
        self.run(
            python,
            "-m",
            "pip",
            "download",
            "-q",
            "--no-deps",
            "--no-binary",
            name,
            "-d",
            "sdist",
            f"{name}=={version}",
            timeout_s=600,
        )
        (archive,) = (self.folder / "sdist").glob("*.tar.gz")
        with tarfile.open(archive) as source:
            source.extractall(self.folder / "source", filter="data")
        (root,) = (self.folder / "source").iterdir()
        return root

    def clone_of(self, repository: str, tag: str) -> Path:
        """Take the source at a tag with git, whose own settings may name a mirror."""
        root = self.folder / "clone"
        self.run(
            "git", "-c", "advice.detachedHead=false", "clone", "-q", "--depth", "1", "--branch", tag,
            repository, str(root), timeout_s=600,
        )  # fmt: skip
        return root

    def go_source(self, module: str, version: str) -> Path | None:
        """Download a Go module and return a copy of it that may be changed; None where it is not to be had."""
        told = self.run(
            "go", "mod", "download", "-json", f"{module}@{version}", timeout_s=600, GO111MODULE="on"
        )
        source = re.search(r'"Dir": "([^"]+)"', told)
        if source is None:
            return None
        root = self.folder / "module"
        shutil.copytree(source[1], root)
        self.run("chmod", "-R", "u+w", str(root), timeout_s=60)
        return root

    def crate_source(self, name: str, version: str) -> Path | None:
        """Download a crate and return a copy of it that may be changed; None where it is not to be had."""
        root = self.folder / "fetch"
        root.mkdir()
        self.run("cargo", "init", "-q", "--name", "fetch", ".", cwd=root, timeout_s=60)
        self.run("cargo", "add", "-q", f"{name}@={version}", cwd=root, timeout_s=300)
        self.run("cargo", "fetch", "-q", cwd=root, timeout_s=900)
        home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
        found = list(home.glob(f"registry/src/*/{name}-{version}"))
        return Path(shutil.copytree(found[0], self.folder / name)) if found else None


def run_pytest(place: Place, python: str, root: Path, *arguments: str, **env: str) -> Count:
    """Run pytest in a folder, a minute for each case, and sum up its report."""
    report = place.folder / "report.xml"
    place.run(
        python,
        "-m",
        "pytest",
        "-q",
        f"--timeout={patient(60):.0f}",
        f"--junitxml={report}",
        *arguments,
        cwd=root,
        timeout_s=1200,
        **env,
    )
    return count_junit(report)


def count_junit(report: Path) -> Count:
    """Sum up a JUnit report; a test that was run again counts once, by its worst entry."""
    try:
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return Count(failed=1, failures=("no report was written",))
    worst: dict[str, str] = {}
    for case in cases:
        name = f"{case.get('classname')}::{case.get('name')}"
        bad = case.find("failure") is not None or case.find("error") is not None
        state = "failed" if bad else "skipped" if case.find("skipped") is not None else "passed"
        if RANK[state] >= RANK[worst.get(name, "passed")]:
            worst[name] = state
    states = list(worst.values())
    failures = tuple(sorted(name for name, state in worst.items() if state == "failed"))
    return Count(*(states.count(one) for one in ("passed", "failed", "skipped")), failures=failures)


def count_lines(output: str) -> Count:
    """Sum up a driver's `ok NAME` and `FAILED NAME ...` lines."""
    passed = re.findall(r"^ok (\S.*)$", output, re.MULTILINE)
    failed = re.findall(r"^FAILED (.+)$", output, re.MULTILINE)
    if not passed and not failed:
        failed = ["the driver said nothing: " + output[-300:]]
    return Count(len(passed), len(failed), 0, tuple(failed))


def count_go(output: str) -> Count:
    """Sum up `go test -v`: cases without cases of their own below them, so that each counts once."""
    ended = {name: how for how, name in GO_CASE.findall(output)}
    outer = {name.rpartition("/")[0] for name in ended}
    cases = {name: how for name, how in ended.items() if name not in outer}
    if not cases:
        return Count(failed=1, failures=("nothing was built: " + output[-300:],))
    states = list(cases.values())
    failures = tuple(sorted(name for name, how in cases.items() if how == "FAIL"))
    return Count(*(states.count(one) for one in ("PASS", "FAIL", "SKIP")), failures=failures)


def count_rust(output: str) -> Count:
    """Sum up what `cargo test` printed."""
    numbers = RUST_RESULT.findall(output)
    if not numbers:
        return Count(failed=1, failures=("nothing was built: " + output[-300:],))
    passed, failed, ignored, left_out = (sum(int(row[at]) for row in numbers) for at in range(4))
    failures = tuple(re.findall(r"^test (.+) \.\.\. FAILED", output, re.MULTILINE))
    return Count(passed, failed, ignored + left_out, failures)
