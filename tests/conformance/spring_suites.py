"""Spring: an application of ours with all of Spring that speaks AMQP.

State: none; it works in the folder of the place it is given. Callers: `client_suites`.
Versions are those of Spring Boot's and Spring Cloud's lists, named in the application's pom.xml.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

from tests.support.broker_process import BURROWCTL

from .place import DRIVERS, Count, Place, count_lines


def spring_boot(place: Place) -> Count:
    """A Spring Boot application: templates, admin, listeners, Actuator, Cloud Stream, Integration, Cloud Bus."""
    root = place.folder / "boot"
    shutil.copytree(DRIVERS / "spring", root)
    place.run(
        "mvn", "-B", "-q", "-ntp", "compile", "dependency:copy-dependencies", "-DoutputDirectory=lib",
        cwd=root, timeout_s=2400,
    )  # fmt: skip
    output = place.run(
        "java", "-XX:TieredStopAtLevel=1", "-cp", "target/classes:lib/*", "suite.Driver",
        cwd=root, timeout_s=3600, BROKER_HOST=place.host, BROKER_PORT=str(place.port),
        BROKER_API=place.api, BROKER_CTL=_control(place),
    )  # fmt: skip
    return count_lines(output)


def _control(place: Place) -> str:
    """What runs commands on the node: burrowctl, or the other broker's own."""
    given = os.environ.get("BURROWMQ_TEST_CTL")
    return given or f"{BURROWCTL} --data-dir {place.folder / 'node' / 'data'}"


# Each with the programs that it needs.
SPRING: dict[str, tuple[Callable[[Place], Count], tuple[str, ...]]] = {
    "spring-boot": (spring_boot, ("mvn", "java")),
}
