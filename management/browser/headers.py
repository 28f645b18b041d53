"""What every answer tells a browser not to do with it.

Owns no state. `complete` fills in what a handler has not said itself; the UI's files say more. Sources: the OWASP HTTP
headers cheat sheet, rabbit_mgmt_headers (3.13), which sends such headers when it is configured to.
"""

from __future__ import annotations

from burrowmq.management.aio import web

NO_PAGE = "default-src 'none'; frame-ancestors 'none'"
HEADERS = {
    "Cache-Control": "no-cache",  # kept, and asked for again by its ETag
    "Content-Security-Policy": NO_PAGE,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


async def complete(request: web.Request, response: web.StreamResponse) -> None:
    """A hook of aiohttp: the answer is about to be sent."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
