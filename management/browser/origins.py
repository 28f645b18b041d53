"""Whose pages may change something: a browser sends its user's login along with any page's request.

State: the origins of `management.cors.allow_origins`. A request without `Origin` and `Sec-Fetch-Site` comes from a
tool, which sends what it means to; any body and content type is taken from it. A browser's write has to come from a
page of this server, and not as a form, which pages of any origin can send unasked; or from an origin that the
configuration names, in a way that the browser has asked about before (a preflight): no POST but with JSON.

Called by `management.server` for every request. Never here: who the user is. Sources: the Fetch standard, Fetch
Metadata, rabbit_mgmt_cors (3.13), which this is stricter than: `*` never lets a login along.
"""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from burrowmq.management.aio import web

ANY = "*"
# What a page can send without asking the browser's leave.
FORMS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data", "text/plain"})
# RabbitMQ's UI uploads a document as a form; a page of this server may.
UPLOADS = "/api/definitions"
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class Origins:
    """The origins whose pages may call the API, besides this server's own."""

    def __init__(self, allowed: Collection[str] = (), max_age_s: int = 1800) -> None:
        self._allowed = frozenset(allowed)
        self._max_age = str(max_age_s)

    def fault(self, request: web.Request) -> str:
        """Why a write is refused; "" when it is not."""
        headers = request.headers
        origin, site = headers.get("Origin"), headers.get("Sec-Fetch-Site")
        if origin is None and site is None:
            # Browsers of before 2020 name no origin when a form is sent.
            origin = headers.get("Referer")
            if origin is None:
                return ""
        kind = request.content_type if "Content-Type" in headers else ""
        if _is_own(request, origin, site):
            is_upload = kind == "multipart/form-data" and request.path.startswith(UPLOADS)
            return "" if kind not in FORMS or is_upload else f"a page may not send {kind}"
        if self._allows(origin):
            is_asked = request.method != "POST" or kind == "application/json"
            return "" if is_asked else "a page of another origin may send JSON only"
        return (
            f"a page of {origin or 'another origin'} may not change anything here;"
            " management.cors.allow_origins names those that may"
        )

    def _allows(self, origin: str | None) -> bool:
        return origin is not None and (origin in self._allowed or ANY in self._allowed)

    def answer(self, request: web.Request, headers: web.StreamResponse) -> None:
        """Tell the browser which page may read the answer, and before a write, that it may be made."""
        origin, told = request.headers.get("Origin"), headers.headers
        told.setdefault("Vary", "Origin")
        if origin is None or origin == "null" or not self._allows(origin):
            return
        if origin in self._allowed:
            told["Access-Control-Allow-Origin"] = origin
            told["Access-Control-Allow-Credentials"] = "true"
        else:
            told["Access-Control-Allow-Origin"] = ANY
        if request.method == "OPTIONS":
            told["Access-Control-Allow-Methods"] = told.get("Allow", "")
            told["Access-Control-Max-Age"] = self._max_age
            asked = request.headers.get("Access-Control-Request-Headers")
            if asked is not None:
                told["Access-Control-Allow-Headers"] = asked


def _is_own(request: web.Request, origin: str | None, site: str | None) -> bool:
    """Whether the page is this server's.

    `Sec-Fetch-Site` is the browser's word. Without it (browsers leave it out towards an address that is neither this
    machine nor HTTPS) the origin has to be the host that was asked; its scheme may be HTTPS before a proxy of HTTP.
    """
    if site == "same-origin":
        return True
    if site in ("same-site", "cross-site"):
        return False
    if origin is None:
        return True  # somebody's own doing, no page's
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    if parts.scheme not in _DEFAULT_PORTS or (request.secure and parts.scheme == "http"):
        return False
    asked, default = request.host.lower(), _DEFAULT_PORTS[parts.scheme]
    return parts.netloc.lower().removesuffix(default) == asked.removesuffix(default)
