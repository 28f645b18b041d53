"""Stands in for the container launcher of aiormq's and aio-pika's tests, and for their fixtures.

It hands back the broker of AMQP_URL. Loaded twice: as the suite's docker_client and as a pytest
plugin that supplies the fixtures which aiormq's source distribution leaves out.
"""

import os
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
from yarl import URL


class DockerNotAvailableError(Exception):
    """Named by the suites; never raised here."""


class DockerHostInfo(SimpleNamespace):
    """Where containers are reached."""


class ContainerInfo(SimpleNamespace):
    """One running container."""


def parse_docker_host(docker_host=None):
    return DockerHostInfo(host="127.0.0.1", container_host="127.0.0.1")


def check_docker_available():
    return parse_docker_host()


class DockerClient:
    """Answers every start with the broker under test."""

    def __init__(self, *_):
        pass

    def run(self, image, ports, environment=None):
        place = urlsplit(os.environ["AMQP_URL"])
        numbers = {"5672/tcp": place.port or 5672, "5671/tcp": 1, "15672/tcp": 15672}
        return ContainerInfo(id="none", ports=numbers, host=place.hostname)

    def kill(self, *_):
        pass

    remove = kill


@pytest.fixture(scope="session")
def rabbitmq_container():
    return DockerClient().run("", [])


@pytest.fixture(scope="session")
def amqp_direct_url():
    url = URL(os.environ["AMQP_URL"])
    return url if url.path not in ("", "/") else url.with_path("//")
