"""Readers: the text of a configuration value -> a typed value, or ValueError with a text for the operator.

Each reader carries the rules of one RabbitMQ data type. Sizes have three: `size` follows RabbitMQ 3.13's
memory limits (kB, MB, GB, TB and the bare k, M, G, T are powers of 1000; KiB/Ki ... powers of 1024),
`binary_size` is the older type in which every unit is a power of 1024 (frame_max = 4kb is 4096), and
`integer` takes no unit at all (consumer_timeout, max_message_size). Called by `schema` only; no state.

Invariant: a reader never returns a value out of the range that its caller stated.
Source: rabbitmq-server, deps/rabbit/priv/schema/rabbit.schema and cuttlefish's data types.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from burrowmq.records import NamedTuple

T = TypeVar("T")
Reader = Callable[[str], T]

_SIZE = re.compile(r"(\d+)\s*([A-Za-z]*)\Z")
_WITH_UNIT = re.compile(r"[\d.]+ *[A-Za-z%]+\Z")
_DECIMAL = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?\Z")
_PORT_MAX = 65535
FRAME_SIZE_MIN = 4096
C_INT_MAX = 2**31 - 1
"""What an option of a socket may be."""
_SHORT_MAX = 255
_NUMBER_MAX = 40
"""No number has so many characters."""
QUEUE_TYPES = ("classic", "quorum", "stream")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[fwdhms])")
_MILLISECONDS = {
    "f": 1_209_600_000,
    "w": 604_800_000,
    "d": 86_400_000,
    "h": 3_600_000,
    "m": 60_000,
    "s": 1000,
    "ms": 1,
}


class Endpoint(NamedTuple):
    """Where a listener binds; host "" means every interface (the reader's answer to a bare port)."""

    host: str
    port: int


def text(value: str) -> str:
    """Return the value as it is; no file, user or pattern has a zero byte in it."""
    if "\0" in value:
        raise ValueError("there is a zero byte in it")
    return value


def unicode_text(value: str) -> str:
    """Return the value as it is, unless it came from octets that are no UTF-8: it is stored and sent as that."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("it is not UTF-8 text") from None
    return text(value)


def short_text(value: str) -> str:
    """Return the name of a user or virtual host, unless AMQP has no room for it."""
    if len(unicode_text(value).encode()) > _SHORT_MAX:
        raise ValueError(f"it has more than {_SHORT_MAX} octets")
    return value


def node_name(value: str) -> str:
    """Return a node's name: `name`, or `name@host`."""
    name, at, host = unicode_text(value).partition("@")
    if not name or (at and not host) or "@" in host:
        raise ValueError(f"{value!r} is not of the form name@host")
    return value


def directory(value: str) -> str:
    """Return the name of a directory; without one, files would come to lie below the root."""
    if not value:
        raise ValueError("it is empty: name a directory")
    return text(value)


def readable(value: str) -> str:
    """Return the name of a file or directory that can be read; a pipe may have nobody who writes, a device no end."""
    if not (os.path.isfile(text(value)) or os.path.isdir(value)) or not os.access(value, os.R_OK):
        raise ValueError(unreadable(value))
    return value


def readable_file(value: str) -> str:
    """Return the name of a file that can be read."""
    if not os.path.isfile(text(value)):
        raise ValueError(unreadable(value))
    return readable(value)


def unreadable(name: str) -> str:
    """Say in RabbitMQ's words that a file is of no use."""
    return f"file {name} does not exist or cannot be read by the node"


def _check_length(value: str) -> None:
    """Refuse what Python would refuse in words of its own, or not convert at all."""
    if len(value) > _NUMBER_MAX:
        raise ValueError(f"{value[:_NUMBER_MAX] + '...'!r} is too long for a number")


def integer(least: int, most: int | None = None) -> Reader[int]:
    """Return a reader of whole numbers from `least` to `most`."""

    def read(value: str) -> int:
        _check_length(value)
        if not re.fullmatch(r"[+-]?\d+", value):
            bare = ", write a whole number without a unit" if _WITH_UNIT.match(value) else ""
            raise ValueError(f"{value!r} cannot be converted to an integer{bare}")
        number = int(value)
        if number < least or (most is not None and number > most):
            upper = "" if most is None else f" and at most {most}"
            raise ValueError(f"{number} is out of range, it must be at least {least}{upper}")
        return number

    return read


def limit(least: int, most: int | None = None) -> Reader[int | None]:
    """Return a reader of whole numbers that also knows `infinity` (None)."""
    number = integer(least, most)

    def read(value: str) -> int | None:
        return None if value == "infinity" else number(value)

    return read


def or_most(least: int, most: int) -> Reader[int]:
    """Return a reader of whole numbers for which `infinity` is the largest."""
    number = integer(least, most)
    return lambda value: most if value == "infinity" else number(value)


def ratio(least: float, most: float) -> Reader[float]:
    """Return a reader of `0.4` or `40%`, from `least` to `most`."""

    def read(value: str) -> float:
        _check_length(value)
        digits, divisor = (value[:-1].strip(), 100.0) if value.endswith("%") else (value, 1.0)
        if not re.fullmatch(r"\d+(\.\d+)?", digits):
            raise ValueError(f"{value!r} cannot be converted to a ratio, write 0.4 or 40%")
        number = float(digits) / divisor
        if not least <= number <= most:
            raise ValueError(f"{value} is out of range, it must be between {least:g} and {most:g}")
        return number

    return read


def optional(read: Reader[T]) -> Reader[T | None]:
    """Return the same reader for a field whose default is None."""
    return read


def _sized(value: str, units: dict[str, int]) -> int:
    _check_length(value)
    match = _SIZE.match(value)
    unit = match[2].lower() if match else "?"
    if match and unit.endswith(("ib", "i")) and unit[0] in _BINARY and len(unit) > 1:
        return int(match[1]) * _BINARY[unit[0]]
    multiple = units.get(unit.removesuffix("b"))
    if match is None or multiple is None:
        raise ValueError(
            f"{value!r} is not a size, write bytes or a whole number with a unit such as 512MiB or 2GB"
        )
    return int(match[1]) * multiple


def size(least: int, most: int | None = None) -> Reader[int]:
    """Return a reader of sizes whose plain units are powers of 1000 (RabbitMQ 3.13's memory limits)."""
    number = integer(least, most)
    return lambda value: number(str(_sized(value, _DECIMAL)))


def binary_size(least: int, most: int | None = None) -> Reader[int]:
    """Return a reader of sizes whose every unit is a power of 1024 (RabbitMQ's `bytesize` type)."""
    number = integer(least, most)
    return lambda value: number(str(_sized(value, _BINARY)))


def frame_size(value: str) -> int:
    """Return the size of the largest frame, 0 for no limit; no client may agree to less than AMQP's least."""
    number = binary_size(0, C_INT_MAX)(value)
    if 0 < number < FRAME_SIZE_MIN:
        raise ValueError(f"{number} is out of range, it must be 0 or at least {FRAME_SIZE_MIN}")
    return number


def duration_ms(least: int) -> Reader[int]:
    """Return a reader of milliseconds: a whole number, or `1h`, `1d12h`, `1.5s` (units f w d h m s ms)."""

    def read(value: str) -> int:
        _check_length(value)
        parts = _DURATION_PART.findall(value)
        if value.isascii() and value.isdigit():
            number = int(value)
        elif parts and "".join(f"{amount}{unit}" for amount, unit in parts) == value:
            number = math.ceil(sum(float(amount) * _MILLISECONDS[unit] for amount, unit in parts))
        else:
            raise ValueError(f"{value!r} is not a duration, write milliseconds or 1h, 1d12h, 30s")
        if number < least:
            raise ValueError(f"{value} is out of range, it must be at least {least} ms")
        return number

    return read


def words(value: str) -> tuple[str, ...]:
    """Return the words of a list that commas separate."""
    return tuple(word for each in value.split(",") if (word := each.strip()))


def flag(value: str) -> bool:
    """Return true or false; `on`/`off` are RabbitMQ's other spelling."""
    if value in {"true", "on"}:
        return True
    if value in {"false", "off"}:
        return False
    raise ValueError(f"{value!r} cannot be converted to a flag, write true or false")


def queue_type(value: str) -> str:
    """Return the queue type, by its name or that of RabbitMQ's module."""
    name = value.removeprefix("rabbit_").removesuffix("_queue")
    if value not in {name, f"rabbit_{name}_queue"} or name not in QUEUE_TYPES:
        raise ValueError(f"queue type {value!r} is none of {', '.join(QUEUE_TYPES)}")
    return name


def choice(*names: str) -> Reader[str]:
    """Return a reader of one of `names`."""
    return choice_of({name: name for name in names})


def choice_of(meanings: Mapping[str, str]) -> Reader[str]:
    """Return a reader of one of the names, each of which stands for a value."""

    def read(value: str) -> str:
        if value not in meanings:
            raise ValueError(
                f"{value!r} is not a valid enum value, acceptable values are: {', '.join(meanings)}"
            )
        return meanings[value]

    return read


def pattern(value: str) -> str:
    """Return a regular expression after trying to compile it."""
    try:
        re.compile(value)
    except re.error as error:
        raise ValueError(f"{value!r} is not a regular expression: {error}") from None
    return value


def port(value: str) -> int:
    """Return a TCP port; 0 lets the system choose a free one."""
    return integer(0, _PORT_MAX)(value)


def host(value: str) -> str:
    """Return an IP address (IPv6 with or without brackets) or a host name."""
    import ipaddress  # noqa: PLC0415 - an embedded broker is given no address

    bare = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    try:
        address = ipaddress.ip_address(bare)
        mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
        return str(mapped or address)
    except ValueError:
        if re.fullmatch(r"[\d.]+", value) or not _HOST_NAME.match(value):
            raise ValueError(f"{value!r} cannot be converted to an IP address") from None
    return value


def endpoint(value: str) -> Endpoint:
    """Return host and port from `5672`, `127.0.0.1:5672`, `[::1]:5672` or RabbitMQ's `::1:5672`."""
    name, colon, number = value.rpartition(":")
    if colon and not name:
        raise ValueError(f"{value!r} cannot be converted to an address and port")
    return Endpoint(host(name) if colon else "", port(number))


def endpoint_or_none(value: str) -> Endpoint | None:
    """Return host and port, or None for `none`."""
    return None if value == "none" else endpoint(value)


def origin(value: str) -> str:
    """Return a web origin as browsers write it, or `*`."""
    if value != "*" and not re.fullmatch(r"https?://[\w.:\[\]-]+", value.lower()):
        raise ValueError(
            f"{value!r} is not an origin, write something like https://example.org:8443"
        )
    return value.lower()


def http_path(value: str) -> str:
    """Return an absolute URL path."""
    if not re.fullmatch(r"/[\w./-]*", value):
        raise ValueError(f"{value!r} is not a path, write something like /metrics")
    return value
