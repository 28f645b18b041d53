"""/api/login: name and password for the cookie of a UI.

Owns no state; `management.callers` keeps the logins. POST takes JSON or, as RabbitMQ does, a form, and answers "ok";
the cookie is ours alone (RabbitMQ's holds the password). DELETE logs out, which RabbitMQ leaves to the browser.
Source: rabbit_mgmt_wm_login.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

from burrowmq.broker.words import json_document
from burrowmq.management.aio import web
from burrowmq.management.answers.reply import ApiError, Call, Route, bad_request, no_content, reply
from burrowmq.management.callers import CALLERS

# Nobody has logged in yet: the body is one name and one password.
BODY_MAX = 65536
FORM = "application/x-www-form-urlencoded"


async def log_in(call: Call) -> web.Response:
    """POST {"username", "password"}."""
    given = await _given(call.request)
    name, password = given.get("username"), given.get("password")
    if not isinstance(name, str) or not isinstance(password, str):
        raise bad_request("username and password are needed")
    response = reply("ok")
    await call.request.app[CALLERS].log_in(call.request, response, name, password)
    return response


async def _given(request: web.Request) -> dict[str, Any]:
    raw = bytearray()
    async for chunk in request.content.iter_any():
        raw += chunk
        if len(raw) > BODY_MAX:
            raise ApiError(413, "bad_request", f"a login is at most {BODY_MAX} bytes")
    try:
        if request.content_type == FORM:
            return dict(parse_qsl(raw.decode(), keep_blank_values=True))
        given = json_document.parse(bytes(raw))
    except ValueError as error:
        raise bad_request("not_json") from error
    return given if isinstance(given, dict) else {}


async def log_out(call: Call) -> web.Response:
    """DELETE: the cookie is worth nothing any more."""
    response = no_content()
    call.request.app[CALLERS].log_out(call.request, response)
    return response


ROUTES = (
    Route("POST", "/api/login", log_in, is_kept=False),
    Route("DELETE", "/api/login", log_out, is_kept=False),
)
