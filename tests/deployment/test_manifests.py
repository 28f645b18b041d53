"""The Kubernetes manifest is read by Kubernetes' own types, strictly; what is wrong with one is found."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .test_files import KUBERNETES, succeed, tool

pytestmark = pytest.mark.long
SOURCE = Path(__file__).with_name("manifests") / "main.go"
# Both of one release; the newest need a newer Go than Debian's.
MODULES = ("k8s.io/client-go@v0.31.4", "k8s.io/apimachinery@v0.31.4")
Check = Callable[[str], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def check(tmp_path_factory: pytest.TempPathFactory) -> Check:
    go, folder = tool("go"), tmp_path_factory.mktemp("manifests")
    shutil.copy(SOURCE, folder)
    for words in (
        ("mod", "init", "manifests"),
        ("get", *MODULES),
        ("mod", "tidy"),
        ("build", "-o", "check"),
    ):
        succeed(go, "-C", str(folder), *words)

    def run(text: str) -> subprocess.CompletedProcess[str]:
        command = [str(folder / "check")]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False)

    return run


def test_kubernetes_reads_the_manifest(check: Check) -> None:
    done = check(KUBERNETES)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("ok ") == KUBERNETES.count("\nkind: ") == 5


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("replicas: 1", "replica: 1"),
        ("replicas: 1", "replicas: one"),
        ("containerPort: 5672", "containerPort: amqp"),
        ("kind: StatefulSet", "kind: StatefulSets"),
        ("readinessProbe:", "readynessProbe:"),
    ],
)
def test_what_is_wrong_is_found(check: Check, right: str, wrong: str) -> None:
    assert right in KUBERNETES
    done = check(KUBERNETES.replace(right, wrong, 1))
    assert done.returncode == 1
    assert "FAILED" in done.stdout
