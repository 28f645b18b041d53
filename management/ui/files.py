"""The files of the UI, served before anybody has logged in: they hold nothing secret, the data behind them does.

State: each file's octets, as they are and compressed, and their tag; read at the first request, then kept (200 KB). The
page at / is asked for again each time; it names the others below a folder that is called after what is in all of them,
so a browser that has them asks no more, and a new version of the node is a new page at once. What is not in the list of
names that was made at the start does not exist: no path of a request becomes a path of a file. The policy lets a page
load this server's files and nothing else, least of all what stands in a message.

Called by `management.server`.
"""

from __future__ import annotations

import gzip
import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from burrowmq.management.aio import accepts_gzip, web

STATIC = Path(__file__).with_name("static")
KINDS = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".css": "text/css",
    ".svg": "image/svg+xml",
    ".LICENSE": "text/plain",
}
POLICY = (
    "default-src 'none'; connect-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)
INDEX = "index.html"
ASK_AGAIN, FOR_EVER = "no-cache", "max-age=31536000, immutable"


class File(NamedTuple):
    """One file, ready to be sent."""

    plain: bytes
    compressed: bytes
    tag: str
    kind: str


def names() -> list[str]:
    """Every file below the folder, by its path there."""
    return sorted(
        str(path.relative_to(STATIC)) for path in STATIC.rglob("*") if path.suffix in KINDS
    )


@cache
def edition() -> str:
    """What all files together are called by."""
    whole = hashlib.sha256()
    for name in names():
        whole.update(name.encode() + b"\0" + (STATIC / name).read_bytes())
    return whole.hexdigest()[:16]


@cache
def file(name: str) -> File:
    """A file of `names`."""
    plain = (STATIC / name).read_bytes()
    if name == INDEX:
        plain = plain.replace(b'"ui/', f'"ui/{edition()}/'.encode())
    tag = hashlib.sha256(plain).hexdigest()[:16]
    return File(plain, gzip.compress(plain, 9, mtime=0), tag, KINDS[Path(name).suffix])


def add_routes(app: web.Application) -> None:
    """Serve the page at / and its files below /ui/, with and without the edition."""
    known = frozenset(names())

    async def handler(request: web.Request) -> web.Response:
        name = request.match_info.get("name", INDEX)
        if name not in known:
            raise web.HTTPNotFound
        # A page of another edition that is still open is given what there is, and asks again.
        return _answer(request, name, request.match_info.get("edition") == edition())

    app.router.add_get("/", handler)
    app.router.add_get("/ui/{edition:[0-9a-f]{16}}/{name:.+}", handler)
    app.router.add_get("/ui/{name:.+}", handler)


def _answer(request: web.Request, name: str, is_final: bool) -> web.Response:
    found = file(name)
    headers = {
        "Cache-Control": FOR_EVER if is_final else ASK_AGAIN,
        "Content-Security-Policy": POLICY,
        "ETag": f'"{found.tag}"',
        "Vary": "Accept-Encoding",
    }
    if found.tag in (each.value for each in request.if_none_match or ()):
        return web.Response(status=304, headers=headers)
    body = found.plain
    if accepts_gzip(request):
        headers["Content-Encoding"], body = "gzip", found.compressed
    return web.Response(body=body, content_type=found.kind, charset="utf-8", headers=headers)
