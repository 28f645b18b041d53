"""An S3-compatible server of its own kind: versitygw, which keeps objects as files of a folder.

State: the folder and the process. It is built once from its Go module into `.venv` (`go install`, some minutes), unless
BURROWMQ_TEST_VERSITYGW names one. Callers: tests of a spool on object storage that kill the server.

Invariants: listens on loopback only; a started server is killed by its own id, and by the kernel when the test run dies.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

from tests.support.broker_process import ROOT
from tests.support.die_with_parent import dying
from tests.support.object_stores import BUCKET, CREDENTIALS, REGION
from tests.support.ports import free_port, is_free

MODULE = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
START_TIMEOUT_S = 30


def program() -> Path | None:
    """Return the server's program, None where it is neither there nor to be built."""
    named = os.environ.get("BURROWMQ_TEST_VERSITYGW")
    if named:
        return Path(named)
    built = ROOT / ".venv" / "go" / "versitygw"
    go = shutil.which("go")
    if not built.exists() and go is not None:
        environment = {**os.environ, "GOBIN": str(built.parent), "GOFLAGS": "-p=1"}
        subprocess.run([go, "install", MODULE], env=environment, check=False)
    return built if built.exists() else None


class VersityGateway:
    """One server; what it keeps outlives its process."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.port = free_port()
        self._program = program
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "objects" / BUCKET).mkdir(parents=True)
        (folder / "meta").mkdir()

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, and return when it answers."""
        keys = [
            "--access",
            CREDENTIALS["AWS_ACCESS_KEY_ID"],
            "--secret",
            CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
        ]
        place = ["--port", f"127.0.0.1:{self.port}", "--region", REGION, "--quiet"]
        kept = ["posix", "--sidecar", str(self._folder / "meta"), str(self._folder / "objects")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                dying([str(self._program), *keys, *place, *kept]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while is_free(self.port):
            if self._process.poll() is not None or time.monotonic() > deadline:
                tail = (self._folder / "log").read_text(errors="replace")[-2000:]
                raise RuntimeError(f"versitygw did not start: {tail}")
            time.sleep(0.05)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
