"""Where a broker is and how to log in: AMQP URIs and what they leave open.

    amqp[s]://user:password@host:port/vhost?option=value[&...][,second address,...]

Owns no state. Called by the connection, and by whoever reads options (`Address` pickles).

Options, with RabbitMQ's names: heartbeat (seconds, 0: none), connection_timeout (milliseconds),
cacertfile, certfile, keyfile, password of the key (key_password_file), verify (verify_peer or
verify_none), server_name_indication. Other options are errors: a typing mistake in `verify` must not
go unnoticed. A path of "/" alone is the virtual host "" as RabbitMQ's URI specification says; no path
at all is "/".

Invariants: the password is in no text and no repr. A password that comes from a file or an environment
variable is read where the connection is made (on an executor), so neither plan nor pickle holds it.
Certificates are checked against the host name unless verify_none is asked for.

Source: RabbitMQ's "AMQP URI Specification" and "URI Query Parameters".
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from pyspark_amqp.wire.errors import BadAddress

PLAIN_PORT = 5672
TLS_PORT = 5671
CONNECT_TIMEOUT_S = 30.0
CONNECT_TIMEOUT_MAX_S = 86_400.0
HEARTBEAT_MAX_S = 65535
_ESCAPED = "# / ? @ in a password or a name are written %23 %2F %3F %40"
_DIGITS_MAX = 18
"""Python itself refuses to read numbers of thousands of digits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """How to secure the connection."""

    cacertfile: str | None = None
    certfile: str | None = None
    keyfile: str | None = None
    key_password_file: str | None = None
    is_verifying: bool = True
    server_name: str | None = None

    def context(self, place: str) -> ssl.SSLContext:
        """Build the context; the files are read here, on the machine that connects.

        Raises: BadAddress when a file cannot be used.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if not self.is_verifying:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        try:
            if self.cacertfile is not None:
                context.load_verify_locations(self.cacertfile)
            elif self.is_verifying:
                context.load_default_certs()
            if self.certfile is not None:
                # Not None: OpenSSL would ask the terminal for the password of an encrypted key, and wait.
                password = _secret(self.key_password_file) if self.key_password_file else ""
                context.load_cert_chain(self.certfile, self.keyfile, password)
        except (OSError, ValueError) as error:
            reason = str(error)
            if self.certfile is not None and self.key_password_file is None:
                reason += " (a key that is encrypted needs key_password_file)"
            raise BadAddress(place, "reading certificates", reason) from error
        return context


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One broker, one virtual host, one user."""

    host: str = "localhost"
    port: int = PLAIN_PORT
    vhost: str = "/"
    user: str = "guest"
    password: str | None = field(default="guest", repr=False)
    password_file: str | None = None
    password_env: str | None = None
    tls: Tls | None = None
    heartbeat_s: int = 0
    connect_timeout_s: float = CONNECT_TIMEOUT_S
    connection_name: str = "pyspark_amqp"

    @property
    def place(self) -> str:
        """Name the broker and virtual host for texts."""
        scheme = "amqp" if self.tls is None else "amqps"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port} (virtual host '{self.vhost}')"

    def find_password(self) -> str:
        """Return the password from where it was said to be.

        Raises: BadAddress when the file or variable is not there.
        """
        if self.password_file is not None:
            try:
                return _secret(self.password_file)
            except (OSError, ValueError) as error:
                raise BadAddress(self.place, "reading the password file", str(error)) from error
        if self.password_env is not None:
            found = os.environ.get(self.password_env)
            if found is None:
                reason = f"environment variable {self.password_env} is not set"
                raise BadAddress(self.place, "reading the password", reason)
            return found
        return self.password or ""

    def named(self, connection_name: str) -> Address:
        """Return the same address with another name for the broker's list of connections."""
        return replace(self, connection_name=connection_name)


def parse_addresses(text: str) -> list[Address]:
    """Read one or more addresses, separated by commas; they are tried in this order.

    Raises: BadAddress.
    """
    found = [parse_address(one.strip()) for one in text.split(",") if one.strip()]
    if not found:
        raise BadAddress("amqp", "reading the address", "it is empty")
    return found


def parse_address(uri: str) -> Address:
    """Read one AMQP URI.

    Raises: BadAddress.
    """
    try:
        parts = urlsplit(uri)
        port = parts.port
    except ValueError:
        # urllib's text may quote a piece of a password whose # or / was not escaped.
        raise _bad("the address", f"host and port cannot be read; {_ESCAPED}") from None
    if parts.scheme not in {"amqp", "amqps"}:
        raise _bad("the address", "it must begin with amqp:// or amqps://")
    if parts.username is None and "@" in f"{parts.path}{parts.query}{parts.fragment}":
        # What stands before it may be a password that was not escaped: no text may say it.
        raise _bad("the address", f"there is an @ behind the host; {_ESCAPED}")
    vhost = "/"
    if parts.path:
        vhost = unquote(parts.path[1:])
        if "/" in parts.path[1:]:
            raise _bad("the virtual host", "a / in its name is written %2F")
    address = Address(
        host=_host(parts),
        port=port if port is not None else (TLS_PORT if parts.scheme == "amqps" else PLAIN_PORT),
        vhost=vhost,
        user="guest" if parts.username is None else unquote(parts.username),
        password="guest" if parts.username is None else unquote(parts.password or ""),
        tls=Tls() if parts.scheme == "amqps" else None,
    )
    return with_options(address, dict(parse_qsl(parts.query, keep_blank_values=True)))


def with_options(address: Address, options: dict[str, str]) -> Address:
    """Return the address with URI query options applied.

    Raises: BadAddress for an unknown option or value, and for TLS options without TLS.
    """
    for name, value in options.items():
        if name == "heartbeat":
            address = replace(address, heartbeat_s=_number(name, value, HEARTBEAT_MAX_S))
        elif name == "connection_timeout":
            milliseconds = _number(name, value, int(CONNECT_TIMEOUT_MAX_S * 1000))
            address = replace(address, connect_timeout_s=milliseconds / 1000)
        else:
            address = replace(address, tls=_with_tls_option(address.tls, name, value))
    return address


_TLS_FIELDS = {
    "cacertfile": "cacertfile",
    "certfile": "certfile",
    "keyfile": "keyfile",
    "key_password_file": "key_password_file",
    "server_name_indication": "server_name",
}


def _with_tls_option(tls: Tls | None, name: str, value: str) -> Tls:
    if name != "verify" and name not in _TLS_FIELDS:
        known = ", ".join(["heartbeat", "connection_timeout", "verify", *_TLS_FIELDS])
        raise _bad(f"option '{name}'", f"it is not known; known are {known}")
    if tls is None:
        raise _bad(f"option '{name}'", "it needs TLS: begin the address with amqps://")
    if name != "verify":
        changes: dict[str, Any] = {_TLS_FIELDS[name]: value}
        return replace(tls, **changes)
    if value not in {"verify_peer", "verify_none"}:
        raise _bad("option 'verify'", f"'{value}' is neither verify_peer nor verify_none")
    return replace(tls, is_verifying=value == "verify_peer")


def _host(parts: SplitResult) -> str:
    return unquote(parts.hostname) if parts.hostname else "localhost"


def _number(name: str, value: str, most: int) -> int:
    is_number = value.isascii() and value.isdigit() and len(value) <= _DIGITS_MAX
    if not is_number or int(value) > most:
        raise _bad(f"option '{name}'", f"'{value[:80]}' is no whole number from 0 to {most}")
    return int(value)


def _secret(path: str) -> str:
    """Return a file's text without the line end that editors add. Raises: OSError, ValueError."""
    octets = Path(path).read_bytes()
    try:
        text: str | None = octets.decode()
    except UnicodeDecodeError:
        text = None
    if text is None:
        # Raised here, since the decoder's error has the octets, and would come along as the reason.
        raise ValueError(f"{path} is no UTF-8")
    return text.rstrip("\r\n")


def _bad(what: str, reason: str) -> BadAddress:
    return BadAddress("amqp", f"reading {what}", reason)
