"""What Spark needs of a machine, and what a job says where that is missing.

Owns no state. Called by the command line when a job could not begin: Spark itself says only that its gateway exited.
Asked afterwards, not before, because Spark may find a Java that nobody else would (`conf/spark-env.sh`). The tests ask
the same before they run.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

LEAST: Final = 17
HOW_TO_GET_IT: Final = (
    "apt-get install openjdk-17-jre-headless, dnf install java-17-openjdk-headless, brew install openjdk@17, or "
    "https://adoptium.net; JAVA_HOME names one that is not first in PATH"
)

_PACKAGES: Final = frozenset({"pyspark", "pyarrow", "py4j"})


def command(environment: Mapping[str, str]) -> str | None:
    """Return the Java that Spark would start."""
    home = environment.get("JAVA_HOME")
    if home:
        found = Path(home) / "bin" / "java"
        return str(found) if found.exists() else None
    return shutil.which("java", path=environment.get("PATH"))


def version_in(text: str) -> int | None:
    """Return the major version that `java -version` prints; 8 for "1.8"."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def what_is_missing(environment: Mapping[str, str]) -> str | None:
    """Return why Spark cannot run here, None when it can."""
    java = command(environment)
    if java is None:
        home = environment.get("JAVA_HOME")
        return "there is no Java" + (f" in JAVA_HOME ({home})" if home else "")
    try:
        done = subprocess.run(  # noqa: S603 - what Spark would start, too
            [java, "-version"], capture_output=True, text=True, check=False
        )
    except OSError as error:
        return f"{java} cannot be started ({error.strerror})"
    version = version_in(done.stderr + done.stdout)
    if version is None:
        return f"{java} does not say its version"
    return None if version >= LEAST else f"{java} is Java {version}"


def refusal(error: Exception, environment: Mapping[str, str]) -> str | None:
    """Return what to say when a job ended with this error; None: it has nothing to do with what is installed."""
    if isinstance(error, ModuleNotFoundError):
        if error.name not in _PACKAGES:
            return None
        return f"there is no {error.name} for {sys.executable}: pip install 'burrowmq[spark]'"
    if "JAVA_GATEWAY_EXITED" not in str(error):
        return None
    reason = what_is_missing(environment)
    if reason is None:
        return None
    return f"Spark needs Java {LEAST} or newer, and {reason}. Get it: {HOW_TO_GET_IT}"
