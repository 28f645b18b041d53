"""Tools that ask the HTTP API, each run as it is against one node.

State: none; each works in the folder of the place it is given. Callers: `client_suites`.
Versions are pinned; what a tool came to on RabbitMQ, and our differences, are in expected.toml.
"""

from __future__ import annotations

import re
import shutil
import urllib.request
from collections.abc import Callable

from .place import DRIVERS, NOT_DOWNLOADED, Count, Place, count_junit, count_lines

ADMIN_SCRIPT = DRIVERS.parents[2] / "management" / "download" / "rabbitmqadmin.py"
NOT_RABBIT_HOLE = (
    "federation|[Ss]hovel|default queue type is set|when there are runtime parameters|lists deprecated feature flags"
    r"|parameters/\{component\}/\{vhost\}/\{name\} when the parameter does not exist"
)
RABBIT_HOLE, RABBIT_HOLE_VERSION = "github.com/michaelklishin/rabbit-hole/v3", "v3.2.0"
# Its own list of dependencies pins versions that not every index has.
DATADOG = (
    *("datadog-checks-base==38.7.0", "pika==1.3.2", "prometheus-client", "requests"),
    *("requests-unixsocket2", "pydantic", "lazy-loader", "cachetools", "wrapt", "pyyaml"),
    *("simplejson", "binary", "python-dateutil", "jellyfish"),
)


def _admin_driver(place: Place, driver: str, program: str) -> Count:
    path = str(DRIVERS / driver)
    port = str(place.management_port)
    return count_lines(place.run("bash", path, program, place.host, port, timeout_s=300))


def rabbitmqadmin(place: Place) -> Count:
    """RabbitMQ's rabbitmqadmin, as its package installs it: every subcommand and format."""
    return _admin_driver(place, "rabbitmqadmin.sh", str(shutil.which("rabbitmqadmin")))


def own_rabbitmqadmin(place: Place) -> Count:
    """The rabbitmqadmin that the node hands out, by the same driver."""
    program = place.folder / "rabbitmqadmin"
    url = f"http://{place.host}:{place.management_port}/cli/rabbitmqadmin"
    with urllib.request.urlopen(url, timeout=10) as answer:
        program.write_bytes(answer.read())
    program.chmod(0o755)
    return _admin_driver(place, "rabbitmqadmin.sh", str(program))


def rabbitmqadmin_ng(place: Place) -> Count:
    """rabbitmqadmin 2, built from its crate: every command that is not about plugins or other queue types."""
    root = str(place.folder / "ng")
    command = ("cargo", "install", "--debug", "--locked", "--root", root, "rabbitmqadmin@2.35.0")
    place.run(*command, timeout_s=2400, CARGO_TARGET_DIR=f"{root}/target")
    return _admin_driver(place, "rabbitmqadmin_ng.sh", f"{root}/bin/rabbitmqadmin")


def rabbit_hole(place: Place) -> Count:
    """rabbit-hole's suite (Go), its addresses replaced by the node's; left out: plugins, and what 3.10.8 fails."""
    root = place.go_source(RABBIT_HOLE, RABBIT_HOLE_VERSION)
    if root is None:
        return NOT_DOWNLOADED
    for name in ("rabbithole_test.go", "health_checks_test.go", "deprecated_features_test.go"):
        text = (root / name).read_text()
        text = text.replace("127.0.0.1:15672", f"{place.host}:{place.management_port}")
        text = text.replace("localhost:5672", f"{place.host}:{place.port}")
        (root / name).write_text(re.sub(r"\b5672\b", str(place.port), text))
    driver = str(DRIVERS / "rabbit_hole_setup.sh")
    program = str(place.folder / "rabbitmqadmin")
    shutil.copy(ADMIN_SCRIPT, program)
    place.run("bash", driver, program, place.host, str(place.management_port), timeout_s=60)
    report = place.folder / "report.xml"
    place.run(
        "go", "test", "-count=1", "-timeout", "900s", ".", "-args", "-ginkgo.no-color",
        f"-ginkgo.skip={NOT_RABBIT_HOLE}",
        f"-ginkgo.junit-report={report}",
        cwd=root, timeout_s=1200, GOMEGA_DEFAULT_EVENTUALLY_TIMEOUT="5s",
    )  # fmt: skip
    return count_junit(report)


def flower(place: Place) -> Count:
    """Celery Flower's broker page, which asks the HTTP API."""
    python = place.environment_with("celery==5.7.0", "flower==2.0.1")
    driver = str(DRIVERS / "flower_paths.py")
    return count_lines(
        place.run(python, driver, timeout_s=300, BROKER_URL=place.url, BROKER_API=place.api)
    )


def terraform(place: Place) -> Count:
    """The calls of Terraform's provider, whose module is in no registry, by the client library that it uses."""
    root = place.folder / "calls"
    root.mkdir()
    shutil.copy(DRIVERS / "terraform_calls.go", root)
    place.run("go", "mod", "init", "calls", cwd=root, timeout_s=60)
    place.run("go", "get", f"{RABBIT_HOLE}@{RABBIT_HOLE_VERSION}", cwd=root, timeout_s=600)
    return count_lines(place.run("go", "run", ".", cwd=root, timeout_s=600, BROKER_API=place.api))


def keda(place: Place) -> Count:
    """KEDA's scaler, compiled from its module with our cases beside it: every mode, over HTTP and AMQP."""
    root = place.go_source("github.com/kedacore/keda/v2", "v2.21.0")
    if root is None:
        return NOT_DOWNLOADED
    folder = root / "pkg" / "scalers"
    shutil.copy(DRIVERS / "keda_paths_test.go", folder)
    files = ("rabbitmq_scaler.go", "scaler.go", "keda_paths_test.go")
    return count_lines(
        place.run(
            "go", "test", "-v", "-count=1", *files,
            cwd=folder, timeout_s=2400, BROKER_URL=place.url, BROKER_API=place.api,
        )
    )  # fmt: skip


def datadog(place: Place) -> Count:
    """The queries of Datadog's integration, and /metrics read by Datadog's own class."""
    python = place.environment_with(*DATADOG)
    metrics = f"http://{place.host}:{place.prometheus_port}"
    driver = str(DRIVERS / "datadog_queries.py")
    places = {"BROKER_URL": place.url, "BROKER_API": place.api, "BROKER_METRICS": metrics}
    return count_lines(place.run(python, driver, timeout_s=300, **places))


# Each with the programs that it needs.
TOOLS: dict[str, tuple[Callable[[Place], Count], tuple[str, ...]]] = {
    "rabbitmqadmin": (rabbitmqadmin, ("rabbitmqadmin",)),
    "own-rabbitmqadmin": (own_rabbitmqadmin, ()),
    "rabbitmqadmin-ng": (rabbitmqadmin_ng, ("cargo",)),
    "rabbit-hole": (rabbit_hole, ("go",)),
    "flower": (flower, ()),
    "terraform": (terraform, ("go",)),
    "keda": (keda, ("go",)),
    "datadog": (datadog, ()),
}
