"""AMQP URIs: where a link leads, and how it logs in there.

    amqp[s]://[user[:password]@][host[:port]][/vhost][?key=value&...]

Without a host it leads into this node, without a socket. An IPv6 address stands in brackets, one of a link with its
interface behind an escaped percent sign, [fe80::1%25eth0]. Keys: heartbeat (s), connection_timeout (ms), channel_max,
frame_max, auth_mechanism (plain, amqplain, external; may be repeated); for amqps cacertfile, certfile, keyfile,
password, verify (verify_none, verify_peer), server_name_indication (a name, or "disable"). Others are ignored.

User, password, virtual host and host, and of the query what TLS is told, are octets, escaped by a percent sign; a plus
stands for itself. Texts have octets that are no UTF-8 as AMQP's names have them ("surrogateescape").

Owns no state. Refusals are BadUri with the term that RabbitMQ prints. Source: RabbitMQ's amqp_uri and its URI
specifications; the answers of a live 3.10 node.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote

from burrowmq.records import dataclass

_URI: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://"
    r"(?:(?P<userinfo>[^@/?#]*)@)?"
    r"(?P<host>\[[0-9A-Fa-f:.]+(?:%[^\[\]/?#@]+)?\]|[^:/?#@\[\]]*)(?::(?P<port>[^/?#@]*))?"
    r"(?P<path>/[^?#]*)?(?:\?(?P<query>[^#]*))?(?:#.*)?"
)
_ESCAPED: Final = re.compile(rb"%(.{0,2})", re.DOTALL)
_HEX: Final = frozenset(b"0123456789abcdefABCDEF")
DEFAULT_PORTS: Final = {"amqp": 5672, "amqps": 5671}
MECHANISMS: Final = ("plain", "amqplain", "external")
PORT_MAX: Final = 65535
CONNECTION_TIMEOUT_MS: Final = 60_000
HEARTBEAT_S: Final = 10

Query = list[tuple[str, str | None]]
"""Keys and values in their order; what has no equals sign has no value."""


class BadUri(ValueError):
    """It is no AMQP URI; `term` is why, as Erlang prints it."""

    def __init__(self, term: str, uri: str) -> None:
        shown = public(uri)
        super().__init__(term.replace(f'"{uri}"', f'"{shown}"') + f" in {shown}")
        self.term = term
        self.uri = uri


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsWish:
    """What an amqps URI says about its certificates; paths of files on this machine."""

    cacertfile: str = ""
    certfile: str = ""
    keyfile: str = ""
    password: str = ""
    is_verified: bool = False
    server_name: str | None = None
    """For SNI and the name in the certificate; None: the host, empty: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where a link leads."""

    uri: str
    host: str = ""
    """Empty: into this node."""
    port: int = 0
    vhost: str = "/"
    username: str | None = None
    password: str | None = None
    tls: TlsWish | None = None
    mechanisms: tuple[str, ...] = ("plain",)
    heartbeat_s: int = HEARTBEAT_S
    connection_timeout_ms: int = CONNECTION_TIMEOUT_MS
    channel_max: int = 0
    frame_max: int = 0

    @property
    def is_local(self) -> bool:
        """Whether it leads into this node."""
        return not self.host

    @property
    def public(self) -> str:
        """The URI without what is secret."""
        return public(self.uri)


def public(uri: str) -> str:
    """A URI without user, password and query, for status and log."""
    found = _URI.fullmatch(uri)
    if found is None:
        return "(no URI)"
    port = f":{found['port']}" if found["port"] else ""
    return f"{found['scheme']}://{found['host']}{port}{found['path'] or ''}"


def parse(uri: str, default_vhost: str) -> Target:
    """Where a URI leads. Raises: BadUri."""
    found = _URI.fullmatch(uri)
    if found is None:
        raise BadUri(_unparsable(uri), uri)
    scheme = found["scheme"].lower()
    if scheme not in DEFAULT_PORTS:
        raise BadUri(f'{{unexpected_uri_scheme,"{found["scheme"]}"}}', uri)
    userinfo = _userinfo(found["userinfo"], uri)
    port = _port(found["port"], DEFAULT_PORTS[scheme], uri)
    vhost = _vhost(found["path"], default_vhost, uri)
    host = _unescaped(found["host"].strip("[]"), uri)
    username, password = (None if part is None else _unescaped(part, uri) for part in userinfo)
    if not host:
        return Target(uri=uri, vhost=vhost, username=username, password=password)
    query = _query(found["query"] or "")
    return Target(
        uri=uri,
        host=host,
        port=port,
        vhost=vhost,
        username="guest" if username is None else username,
        password="guest" if password is None else password,
        tls=_tls(query, uri) if scheme == "amqps" else None,
        mechanisms=_mechanisms(query),
        heartbeat_s=_integer(query, "heartbeat", HEARTBEAT_S, uri),
        connection_timeout_ms=_integer(query, "connection_timeout", CONNECTION_TIMEOUT_MS, uri),
        channel_max=_integer(query, "channel_max", 0, uri),
        frame_max=_integer(query, "frame_max", 0, uri),
    )


def _unparsable(uri: str) -> str:
    """Without the stack that RabbitMQ shows with it."""
    reason = f'{{malformed_uri,"{uri}"}}' if "://" in uri else "no_scheme"
    return f"{{unable_to_parse_uri,{reason}}}"


def _userinfo(text: str | None, uri: str) -> tuple[str | None, str | None]:
    if text is None or not text:
        return None, None
    parts = text.split(":")
    if len(parts) > 2:
        raise BadUri(f'{{invalid_userinfo,"{len(parts)} parts"}}', uri)
    return parts[0], parts[1] if len(parts) == 2 else None


def _port(text: str | None, default: int, uri: str) -> int:
    if not text:
        return default
    if not text.isascii() or not text.isdigit():
        raise BadUri(_unparsable(uri), uri)
    if int(text) > PORT_MAX:
        raise BadUri(f"{{port_out_of_range,{int(text)}}}", uri)
    return int(text)


def _vhost(path: str | None, default: str, uri: str) -> str:
    if path is None:
        return default
    name = path[1:]
    if "/" in name:
        raise BadUri(f'{{invalid_vhost,"{name}"}}', uri)
    return _unescaped(name, uri)


def _unescaped(text: str, uri: str) -> str:
    def octet(found: re.Match[bytes]) -> bytes:
        digits = found[1]
        if len(digits) == 2 and _HEX.issuperset(digits):
            return bytes((int(digits, 16),))
        reason = "unterminated_entity" if len(digits) < 2 else "invalid_entitiy"  # RabbitMQ's word
        shown = ",".join(["'%'", *map(str, digits)])
        raise BadUri(f"{{{reason},[{shown}]}}", uri)

    octets = text.encode("utf-8", "surrogateescape")
    return _ESCAPED.sub(octet, octets).decode("utf-8", "surrogateescape")


def _query(text: str) -> Query:
    """As it stands: neither keys nor values are escaped but for those that `_tls` takes."""
    parts = [part.partition("=") for part in text.split("&")] if text else []
    return [(key, value if equals else None) for key, equals, value in parts]


def _value(query: Query, key: str) -> str | None:
    """The first one of this key that has one."""
    return next((value for name, value in query if name == key and value is not None), None)


def _shown(query: Query) -> str:
    """As Erlang prints it."""
    pairs = (
        _text(key) if value is None else f"{{{_text(key)},{_text(value)}}}" for key, value in query
    )
    return f"[{','.join(pairs)}]"


def _text(text: str) -> str:
    return f'"{text}"' if text else "[]"


def _integer(query: Query, key: str, default: int, uri: str) -> int:
    value = _value(query, key)
    if value is None:
        return default
    if not value.isascii() or not value.isdigit():
        raise BadUri(
            f"{{invalid_amqp_params_parameter,{key},{_text(value)},{_shown(query)},"
            f"{{not_an_integer,{_text(value)}}}}}",
            uri,
        )
    return int(value)


def _mechanisms(query: Query) -> tuple[str, ...]:
    """Those that are asked for; what nobody knows is left to the broker's refusal."""
    named = tuple(value.lower() for key, value in query if key == "auth_mechanism" and value)
    return named or ("plain",)


def _tls(query: Query, uri: str) -> TlsWish:
    def text(key: str) -> str:
        value = _value(query, key) or ""
        try:
            return _unescaped(value, uri)
        except BadUri as bad:
            given = f"{key},{_text(value)},{_shown(query)}"
            raise BadUri(f"{{invalid_ssl_parameter,{given},{bad.term}}}", uri) from None

    name = _value(query, "server_name_indication")
    return TlsWish(
        cacertfile=text("cacertfile"),
        certfile=text("certfile"),
        keyfile=text("keyfile"),
        password=text("password"),
        is_verified=_value(query, "verify") == "verify_peer",
        server_name=None
        if name is None
        else ""
        if name == "disable"
        else text("server_name_indication"),
    )


def build(*, host: str, port: int, vhost: str, username: str, password: str) -> str:
    """An amqp URI of its parts."""
    name, secret, inside = (
        quote(each, safe="", errors="surrogateescape") for each in (username, password, vhost)
    )
    return f"amqp://{name}:{secret}@{host}:{port}/{inside}"
