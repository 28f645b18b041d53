"""What a whole answer is sent as: compressed for who accepts it, and not at all to who has it already.

Owns no state. A GET's answer has a weak ETag, the hash of its text: a page of the UI that asks every few seconds
says with `If-None-Match` what it has, and mostly gets a 304. To make the answer costs the node the same; what is saved
is what goes over the wire, and what the browser would do with it. Answers that are sent while they are made
(`reply_texts`) have none and compress themselves. Called by `management.server` for each answer of the API.

Source: RFC 9110, 8.8.3 and 13.1.2.
"""

from __future__ import annotations

import asyncio
import hashlib
import zlib

from burrowmq.management.aio import accepts_gzip, web

# Below it the headers are most of the answer.
COMPRESSED_FROM_BYTES = 1_400
# Above it compression takes milliseconds, and has a thread of its own; it lets go of the interpreter.
IN_THREAD_FROM_BYTES = 128 * 1024
GZIP_WINDOW = 31
FAST = 1


async def encoded(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    """The answer as the request wants to have it."""
    if not isinstance(response, web.Response) or response.status != 200:
        return response
    body = response.body
    if not isinstance(body, bytes) or "Content-Encoding" in response.headers:
        return response
    if request.method in ("GET", "HEAD") and "ETag" not in response.headers:
        tag = hashlib.blake2b(body, digest_size=12).hexdigest()
        response.headers["ETag"] = f'W/"{tag}"'
        if any(each.value in (tag, "*") for each in request.if_none_match or ()):
            return web.Response(status=304, headers={"ETag": response.headers["ETag"]})
    if len(body) >= COMPRESSED_FROM_BYTES and accepts_gzip(request):
        if len(body) < IN_THREAD_FROM_BYTES:
            response.body = _compressed(body)
        else:
            response.body = await asyncio.to_thread(_compressed, body)
        response.headers["Content-Encoding"] = "gzip"
        response.headers["Vary"] = "Accept-Encoding, Origin"
    return response


def compress(request: web.Request, response: web.StreamResponse) -> None:
    """Have an answer that is sent while it is made compressed, if the request accepts it."""
    if accepts_gzip(request):
        response.enable_compression(web.ContentCoding.gzip)


def _compressed(body: bytes) -> bytes:
    packer = zlib.compressobj(FAST, wbits=GZIP_WINDOW)
    return packer.compress(body) + packer.flush()
