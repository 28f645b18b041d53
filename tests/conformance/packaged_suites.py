"""Clients and tools as Debian packages them, each run against one node.

State: none; each works in the folder of the place it is given. Callers: `client_suites`.
What each came to on RabbitMQ is in expected.toml; docs/tools.md and docs/frameworks.md name the packages.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path

from .place import DRIVERS, Count, Place, count_lines

MESSENGER = "/usr/share/php/Symfony/Component/Messenger/Bridge/Amqp/autoload.php"
ANYEVENT = "/usr/share/perl5/AnyEvent/RabbitMQ.pm"
RABBITMQ_LIBRARIES = Path("/usr/lib/rabbitmq/lib")


def _host_of_node(place: Place) -> str:
    """What stands behind `rabbit@` in the node's name."""
    with urllib.request.urlopen(_as_guest(f"{place.api}overview"), timeout=10) as answer:
        return str(json.load(answer)["node"]).partition("@")[2]


def _as_guest(url: str) -> urllib.request.Request:
    return urllib.request.Request(
        url.replace("guest:guest@", ""), headers={"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}
    )


def nagios(place: Place) -> Count:
    """The plugins of nagios-plugins-rabbitmq: what each says of good and bad, to whom."""
    driver, port = str(DRIVERS / "nagios_checks.sh"), str(place.management_port)
    command = ("bash", driver, place.host, port, _host_of_node(place), place.url)
    return count_lines(place.run(*command, timeout_s=300))


def log_shippers(place: Place) -> Count:
    """syslog-ng's amqp destination, and collectd's amqp plugin in both directions."""
    driver, port = str(DRIVERS / "log_shippers.sh"), str(place.port)
    command = ("bash", driver, place.url, place.host, port, str(place.folder))
    return count_lines(place.run(*command, timeout_s=900))


def tcp_proxies(place: Place) -> Count:
    """HAProxy with three kinds of checks, and nginx, in front of the node."""
    driver, port = str(DRIVERS / "tcp_proxies.sh"), str(place.port)
    return count_lines(
        place.run("bash", driver, place.host, port, str(place.folder), timeout_s=600)
    )


def symfony_messenger(place: Place) -> Count:
    """Symfony Messenger's AMQP transport, over php-amqp."""
    driver, port = str(DRIVERS / "symfony_messenger.php"), str(place.port)
    return count_lines(place.run("php", driver, place.host, port, timeout_s=300))


def anyevent_rabbitmq(place: Place) -> Count:
    """Perl's AnyEvent::RabbitMQ."""
    driver, port = str(DRIVERS / "anyevent_paths.pl"), str(place.port)
    return count_lines(place.run("perl", driver, place.host, port, timeout_s=900))


def erlang_client(place: Place) -> Count:
    """RabbitMQ's Erlang client, from the plugins of an installed rabbitmq-server."""
    driver = str(DRIVERS / "erlang_client.escript")
    plugins = next(RABBITMQ_LIBRARIES.glob("rabbitmq_server-*/plugins"), RABBITMQ_LIBRARIES)
    return count_lines(place.run("escript", driver, str(plugins), place.url, timeout_s=600))


# Each with the programs, or files, that it needs.
PACKAGED: dict[str, tuple[Callable[[Place], Count], tuple[str, ...]]] = {
    "nagios": (nagios, ("check_rabbitmq_server", "amqp-consume", "curl")),
    "log-shippers": (log_shippers, ("syslog-ng", "collectd", "amqp-consume")),
    "tcp-proxies": (tcp_proxies, ("haproxy", "nginx", "amqp-publish", "curl")),
    "symfony-messenger": (symfony_messenger, ("php", MESSENGER)),
    "anyevent-rabbitmq": (anyevent_rabbitmq, ("perl", ANYEVENT)),
    "erlang-client": (erlang_client, ("escript", str(RABBITMQ_LIBRARIES))),
}
