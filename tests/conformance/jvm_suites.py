"""Clients and frameworks of the JVM, each with a driver of ours at one node.

State: none; each works in the folder of the place it is given. Callers: `client_suites`.
Libraries come from Maven's index by pinned versions; what they came to on RabbitMQ is in expected.toml.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial

from .place import DRIVERS, Count, Place, count_lines

FOLDER = DRIVERS / "jvm"
# Flink reads private fields of the JDK's collections.
OPENED = ("java.base/java.util", "java.base/java.lang", "java.base/java.time")
LIBRARIES: dict[str, tuple[str, tuple[str, ...]]] = {
    "java-client": ("JavaClientPaths", ("com.rabbitmq:amqp-client:5.35.0",)),
    "jms": ("JmsPaths", ("com.rabbitmq.jms:rabbitmq-jms:3.7.0",)),
    "reactor-rabbitmq": ("ReactorPaths", ("io.projectreactor.rabbitmq:reactor-rabbitmq:1.5.6",)),
    "vertx": ("VertxPaths", ("io.vertx:vertx-rabbitmq-client:4.5.27",)),
    "camel": (
        "CamelPaths",
        ("org.apache.camel:camel-core:3.22.4", "org.apache.camel:camel-rabbitmq:3.22.4"),
    ),
    "alpakka": (
        "AlpakkaPaths",
        (
            "com.lightbend.akka:akka-stream-alpakka-amqp_2.13:4.0.0",
            "com.typesafe.akka:akka-stream_2.13:2.6.19",
        ),
    ),
    "smallrye": (
        "SmallRyePaths",
        (
            "io.smallrye.reactive:smallrye-reactive-messaging-rabbitmq:4.25.0",
            "org.eclipse.microprofile.reactive-streams-operators:microprofile-reactive-streams-operators-api:3.0",
            "io.smallrye.reactive:mutiny-reactive-streams-operators:2.6.1",
            "io.smallrye.config:smallrye-config:3.8.3",
            "org.jboss.weld.se:weld-se-core:5.1.2.Final",
        ),
    ),
    "flink": (
        "FlinkPaths",
        (
            "org.apache.flink:flink-connector-rabbitmq:3.0.1-1.17",
            "org.apache.flink:flink-streaming-java:1.17.2",
            "org.apache.flink:flink-clients:1.17.2",
        ),
    ),
}


def _project(libraries: tuple[str, ...]) -> str:
    rows = []
    for one in (*libraries, "org.slf4j:slf4j-nop:1.7.36"):
        group, name, version = one.split(":")
        rows.append(
            f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
            f"<version>{version}</version></dependency>"
        )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>suite</groupId><artifactId>suite</artifactId><version>1</version>"
        f"<dependencies>{''.join(rows)}</dependencies></project>"
    )


def _driven(name: str, place: Place) -> Count:
    driver, libraries = LIBRARIES[name]
    (place.folder / "pom.xml").write_text(_project(libraries))
    place.run(
        *("mvn", "-B", "-q", "dependency:copy-dependencies"),
        *("-DoutputDirectory=lib", "-DincludeScope=runtime"),
        timeout_s=1200,
    )
    for source in ("Checks", driver):
        shutil.copy(FOLDER / f"{source}.java", place.folder)
    place.run("javac", "-cp", "lib/*", "-d", ".", "Checks.java", f"{driver}.java", timeout_s=300)
    opened = [f"--add-opens={one}=ALL-UNNAMED" for one in OPENED]
    return count_lines(
        place.run(
            *("java", *opened, "-cp", "lib/*:.", driver),
            timeout_s=1800,
            BROKER_URL=place.url,
            BROKER_API=place.api,
        )
    )


# Each with the programs that it needs.
JVM: dict[str, tuple[Callable[[Place], Count], tuple[str, ...]]] = {
    name: (partial(_driven, name), ("mvn", "java", "javac")) for name in LIBRARIES
}
