"""From values by key to a NodeConfig: plain keys go to their fields, composed ones are declared and put together here.

Called by `load` with the values that were read without error, so a key that was refused counts as not set and
a partial result is never used. No state.

Invariants: without a listener key a listener binds this machine only (127.0.0.1 and ::1); a bare port binds
every interface, as in RabbitMQ.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from burrowmq.config import retention, seeding, tls, units
from burrowmq.config.option import Option
from burrowmq.config.schema import PARTS, NodeConfig, plain_options
from burrowmq.config.tls import TlsConfig
from burrowmq.config.units import Endpoint, Reader

LOOPBACK = ("127.0.0.1", "::1")
EVERY_INTERFACE = ("0.0.0.0", "::")  # noqa: S104 - what the operator's bare port asks for
DEFAULT_NODE = "rabbit"
DEFAULT_MANAGEMENT_PORT = 15672

T = TypeVar("T")
Values = Mapping[str, Any]


_BIND = "a bare port binds every interface, `address:port` one"


def _tls_options(prefix: str) -> tuple[Option, ...]:
    return tuple(replace(key, name=f"{prefix}.{key.name}") for key in tls.KEYS)


COMPOSED = (
    Option("listeners.tcp.$name", units.endpoint, "5672", f"AMQP listener: {_BIND}."),
    Option("listeners.tcp", units.choice("none"), None, "`none`: no plain TCP listener."),
    Option("listeners.ssl.$name", units.endpoint, None, f"AMQP listener with TLS, 5671 by custom: {_BIND}."),
    Option("listeners.ssl", units.choice("none"), None, "`none`: no TLS listener."),
    *_tls_options("ssl_options"),
    Option("auth_mechanisms.$n", units.choice("PLAIN", "AMQPLAIN", "EXTERNAL"), None,
           "How clients may log in (PLAIN and AMQPLAIN, if none is named); EXTERNAL: by a client's certificate."),
    Option("management.listener.port", units.port, None,
           "Old name of `management.tcp.port`, of `management.ssl.port` with `management.listener.ssl = true`."),
    Option("management.listener.ip", units.host, None, "Old name of `.ip` there."),
    Option("management.listener.ssl", units.flag, None,
           "Whether those are a listener with TLS (on 15672, if no port is named)."),
    *_tls_options("management.listener.ssl_opts"),
    Option("management.ssl.port", units.port, None,
           "Port of the HTTP API and UI with TLS, 15671 by custom; alone, it replaces the plain one."),
    Option("management.ssl.ip", units.host, None, "Address that it binds."),
    *_tls_options("management.ssl"),
    Option("prometheus.ssl.port", units.port, None,
           "Port of the metrics with TLS, 15691 by custom; alone, it replaces the plain one."),
    Option("prometheus.ssl.ip", units.host, None, "Address that it binds."),
    *_tls_options("prometheus.ssl"),
    Option("management.tcp.port", units.port, "15672", "Port of the HTTP API and UI."),
    Option("management.tcp.ip", units.host, None, "Address that it binds."),
    *retention.OPTIONS,
    Option("management.cors.allow_origins.$n", units.origin, None,
           "Origin (`https://host[:port]`) whose pages may use the HTTP API and its user's login; `*`: any, no login."),
    Option("management.cors.allow_origins", units.choice("none"), None, "`none`: no other origin's."),
    Option("prometheus.tcp.port", units.port, "15692", "Port of the metrics."),
    Option("prometheus.tcp.ip", units.host, None, "Address that it binds."),
    Option("prometheus.tcp.listener", units.endpoint_or_none, None,
           "`none`: no plain listener; `address:port`: both at once."),
    Option("default_pass", units.text, "guest", "Password of the user made at first start."),
    Option("default_user_tags.$tag", units.flag, None, "Tags of that user (`administrator` if none)."),
    *seeding.options(),
    Option("loopback_users.$user", units.flag, None,
           "`true`: this user may only connect from this machine; `loopback_users.guest = false` frees guest."),
    Option("loopback_users", units.choice("none"), None, "`none`: every user may connect."),
    Option("definitions.import_backend",
           units.choice("local_filesystem", "local", "rabbit_definitions_import_local_filesystem"), None,
           "Where definitions come from: `local_filesystem`."),
    Option("definitions.local.path", units.readable, None, "The same as `load_definitions`."),
    Option("management.load_definitions", units.readable, None, "The same as `load_definitions`, its old name."),
    Option("log.dir", units.text, None,
           "Directory of the log file; setting it, or turning the console off, makes one."),
    Option("log.file", units.text, None, "Name of the log file, or `false` for none."),
    Option("nodename", units.node_name, None, "`name@host`; `rabbit@` this host if unset.", ours=True),
    Option("data_dir", units.directory, "data", "Directory that holds all data.", ours=True),
)  # fmt: skip
"""The keys of which several make one value, as the functions below put them together."""


def node_config(values: Values, environ: Mapping[str, str]) -> NodeConfig:
    """Return the configuration that the values make, with defaults for all that they leave out."""
    values = _with_new_names(values)
    node_name = _node_name(values, environ)
    data_dir = _data_dir(values, environ, node_name)
    parts: dict[str, dict[str, Any]] = {part: {} for part in ("", *PARTS)}
    for part, field, option in plain_options():
        if option.name in values:
            parts[part][field] = values[option.name]
    top = parts[""]
    top |= {"node_name": node_name, "data_dir": data_dir}
    top["listeners"] = _amqp_listeners(values, environ)
    top["tls_listeners"] = _named_listeners(values, "listeners.ssl")
    top["tls"] = _tls(values, "ssl_options")
    parts["login"] |= _login(values)
    for alias in ("definitions.local.path", "management.load_definitions"):
        top.setdefault("load_definitions", values.get(alias))
    top["loopback_users"] = _loopback_users(values)
    top["seeding"] = seeding.seeding(values)
    for part, port in (("management", DEFAULT_MANAGEMENT_PORT), ("prometheus", 15692)):
        parts[part]["listeners"] = _http_listeners(values, part, port, environ)
        parts[part]["tls_listeners"] = _https_listeners(values, part)
        parts[part]["tls"] = _tls(values, f"{part}.ssl")
    parts["management"]["allowed_origins"] = tuple(
        dict.fromkeys(_numbered(values, "management.cors.allow_origins."))
    )
    for section in ("global", "basic"):
        parts["management"][f"{section}_retention"] = retention.retention(values, section)
    parts["first_user"] |= _first_user(values)
    parts["log"]["file_path"] = _log_file(values, data_dir, node_name)
    default = NodeConfig(node_name=node_name, data_dir=data_dir)
    return NodeConfig(
        **top, **{part: type(getattr(default, part))(**parts[part]) for part in PARTS}
    )


def _with_new_names(values: Values) -> Values:
    """Return the values with management.listener.* under the names that took its place, which win."""
    prefix = "management.listener."
    old = {key.removeprefix(prefix): each for key, each in values.items() if key.startswith(prefix)}
    part = "management.ssl" if old.get("ssl") else "management.tcp"
    renamed = {f"{part}.{key}": old[key] for key in ("port", "ip") if key in old}
    if old.get("ssl"):
        opts = "ssl_opts."
        renamed.setdefault(f"{part}.port", DEFAULT_MANAGEMENT_PORT)
        renamed |= {
            f"{part}.{key.removeprefix(opts)}": each
            for key, each in old.items()
            if key.startswith(opts)
        }
    return renamed | dict(values)


def _node_name(values: Values, environ: Mapping[str, str]) -> str:
    name: str = values.get("nodename", DEFAULT_NODE)
    if "@" in name:
        return name
    host = os.uname().nodename
    is_long = environ.get("RABBITMQ_USE_LONGNAME") in {"true", "on"}
    return f"{name}@{host if is_long else host.partition('.')[0]}"


def _data_dir(values: Values, environ: Mapping[str, str], node_name: str) -> str:
    if "data_dir" in values:
        return str(values["data_dir"])
    base = environ.get("RABBITMQ_MNESIA_BASE")
    # As in RabbitMQ: each node has a directory of its own below the base, so that several may share the base.
    return os.path.join(base, node_name) if base else "data"


def _spread(endpoint: Endpoint) -> tuple[Endpoint, ...]:
    if endpoint.host:
        return (endpoint,)
    return tuple(Endpoint(host, endpoint.port) for host in EVERY_INTERFACE)


def _amqp_listeners(values: Values, environ: Mapping[str, str]) -> tuple[Endpoint, ...]:
    if values.get("listeners.tcp") == "none":
        return ()
    named = _named_listeners(values, "listeners.tcp")
    if named:
        return named
    port = _unless_refused(units.port, environ.get("RABBITMQ_NODE_PORT", ""))
    host = environ.get("RABBITMQ_NODE_IP_ADDRESS", "").replace("auto", "")
    if port is not None or host:
        return _spread(Endpoint(host, 5672 if port is None else port))
    return tuple(Endpoint(host, 5672) for host in _unnamed_hosts(environ))


def _unless_refused(read: Reader[T], value: str) -> T | None:
    try:
        return read(value)
    except ValueError:
        return None  # `reading` says what is wrong with it


def _numbered(values: Values, prefix: str) -> list[Any]:
    """Return the values of `prefix.$n`, in the order of the numbers, then of other names."""

    def order(key: str) -> tuple[int, str]:
        name = key.removeprefix(prefix)
        return (int(name), "") if name.isdigit() and len(name) < 10 else (1 << 31, name)

    return [
        values[key] for key in sorted(filter(lambda key: key.startswith(prefix), values), key=order)
    ]


def _named_listeners(values: Values, prefix: str) -> tuple[Endpoint, ...]:
    if values.get(prefix) == "none":
        return ()
    named = [value for key, value in sorted(values.items()) if key.startswith(f"{prefix}.")]
    return tuple(dict.fromkeys(endpoint for value in named for endpoint in _spread(value)))


def _tls(values: Values, prefix: str) -> TlsConfig:
    given: dict[str, Any] = {}
    for key in tls.KEYS:
        name = f"{prefix}.{key.name}"
        if key.name.endswith(".$n"):
            several = _numbered(values, name.removesuffix("$n"))
            if several:
                given[key.name.removesuffix(".$n")] = tuple(several)
        elif name in values:
            given[key.name] = values[name]
    return TlsConfig(**given)


def _login(values: Values) -> dict[str, Any]:
    mechanisms = tuple(dict.fromkeys(_numbered(values, "auth_mechanisms.")))
    return {"mechanisms": mechanisms} if mechanisms else {}


def _unnamed_hosts(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return where a listener binds that no key names; `BURROWMQ_BIND=*` is for containers."""
    return EVERY_INTERFACE if environ.get("BURROWMQ_BIND") == "*" else LOOPBACK


def _https_listeners(values: Values, part: str) -> tuple[Endpoint, ...]:
    port = values.get(f"{part}.ssl.port")
    return () if port is None else _spread(Endpoint(values.get(f"{part}.ssl.ip", ""), port))


def _http_listeners(
    values: Values, part: str, default_port: int, environ: Mapping[str, str]
) -> tuple[Endpoint, ...]:
    port = values.get(f"{part}.tcp.port")
    host = values.get(f"{part}.tcp.ip")
    if f"{part}.tcp.listener" in values:
        whole = values[f"{part}.tcp.listener"]
        return () if whole is None else _spread(whole)
    if port is None and host is None and f"{part}.ssl.port" in values:
        return ()  # as in RabbitMQ: with only a TLS port named, there is no other
    if host is not None:
        return _spread(Endpoint(host, default_port if port is None else port))
    if port is not None:
        return _spread(Endpoint("", port))
    return tuple(Endpoint(address, default_port) for address in _unnamed_hosts(environ))


def _flags(values: Values, prefix: str) -> dict[str, bool]:
    return {
        key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)
    }


def _loopback_users(values: Values) -> frozenset[str]:
    if values.get("loopback_users") == "none":
        return frozenset()
    # Ours: guest stays bound to this machine until it is named; RabbitMQ frees it when any other user is named.
    users = {"guest": True} | _flags(values, "loopback_users.")
    return frozenset(name for name, is_bound in users.items() if is_bound)


def _first_user(values: Values) -> dict[str, Any]:
    given: dict[str, Any] = {}
    if "default_pass" in values:
        given["password"] = values["default_pass"]
    tags = _flags(values, "default_user_tags.")
    if tags:
        given["tags"] = tuple(sorted(name for name, is_set in tags.items() if is_set))
    return given


def _log_file(values: Values, data_dir: str, node_name: str) -> str | None:
    name = values.get("log.file")
    directory = values.get("log.dir")
    if name == "false":
        return None
    if name is None and directory is None and values.get("log.console", True):
        return None
    if name is None:
        name = f"{node_name}.log"
    return os.path.join(directory or os.path.join(data_dir, "log"), name)
