"""aiohttp's server side, without what its client side loads at import.

Owns no state. `import aiohttp` makes a TLS client context and with it reads the system's certificates: 40 ms of the
start and 2 MB for a server that calls nobody. While aiohttp is imported, OpenSSL is told that there are none. Every
module of management takes `web` from here. aiohttp would name itself and Python in every answer, with both versions;
what it names is the product.
"""

from __future__ import annotations

import logging
import os

_NOWHERE = {"SSL_CERT_FILE": os.devnull, "SSL_CERT_DIR": os.devnull}
_before = {name: os.environ.get(name) for name in _NOWHERE}
os.environ.update(_NOWHERE)
try:
    from aiohttp import http_exceptions, web, web_response
finally:
    for _name, _value in _before.items():
        if _value is None:
            del os.environ[_name]
        else:
            os.environ[_name] = _value

# The one place that reaches its answers to what is no HTTP, which no application sees.
web_response.SERVER_SOFTWARE = "BurrowMQ"  # type: ignore[attr-defined]


class _NoPeerFaults(logging.Filter):
    """What the other side does is no error of ours.

    Who sends what is no HTTP (too long a line, a body that is not packed as it says) is told so, and nobody else;
    who hangs up within a request or an answer is told nothing any more.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, PEER_FAULTS)


PEER_FAULTS = (http_exceptions.HttpProcessingError, web.RequestPayloadError, ConnectionError)


SERVER_LOGGER = logging.getLogger("management.http")
"""Where aiohttp's server writes."""
SERVER_LOGGER.addFilter(_NoPeerFaults())

__all__ = ["SERVER_LOGGER", "accepts_gzip", "http_exceptions", "web"]


def accepts_gzip(request: web.Request) -> bool:
    """Whether the request says so, and not that it would rather not (`gzip;q=0`)."""
    for each in request.headers.get("Accept-Encoding", "").split(","):
        name, _, quality = each.partition(";")
        if name.strip().lower() in ("gzip", "*"):
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
