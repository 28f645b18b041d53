"""The management server: aiohttp on TCP, on the control socket and for Prometheus.

State: the runners of the three listeners, their servers, the rate samples and the sampler's task (`Management`).
Started and stopped by `broker.__main__` around the node, on the sockets that `management.bound_sockets` bound. On the
control socket a caller is trusted by its peer credentials; on TCP it needs a user's password; Prometheus asks nothing.
Bodies are limited, and so is how long who asks for nothing is waited for; an error of ours is a 500 without details.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import re
import socket
import weakref
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Any
from urllib.parse import unquote

from burrowmq.broker import inspect
from burrowmq.broker.node.node import Node
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.sockets.listener import address_of
from burrowmq.management import commands, deadlines, sampling, settings
from burrowmq.management.aio import SERVER_LOGGER, web
from burrowmq.management.answers import access
from burrowmq.management.answers.encoding import encoded
from burrowmq.management.answers.rates import Rates
from burrowmq.management.answers.refusals import refusal_of
from burrowmq.management.answers.reply import (
    ApiError,
    Call,
    LoginRequired,
    Route,
    dump,
    reply,
    running_of,
    unauthorised,
)
from burrowmq.management.api import definitions_diff, operator
from burrowmq.management.bound_sockets import BoundSockets, identity_of
from burrowmq.management.browser import headers
from burrowmq.management.browser.origins import Origins
from burrowmq.management.callers import ASKED_BY_SCRIPT, CALLERS, Callers
from burrowmq.management.download import files as downloads
from burrowmq.management.history.history import History
from burrowmq.management.history.timeline import BASIC, GLOBAL
from burrowmq.management.prometheus import endpoint as prometheus
from burrowmq.management.routes import ROUTES
from burrowmq.management.ui import files

LOGGER = logging.getLogger("management")
BACKLOG = 128
REALM = 'Basic realm="RabbitMQ Management"'
BODY_TOO_LARGE = "Exceeded HTTP request body size limit"
PUBLIC_PATHS = frozenset({"/api/auth", "/api/login"})
# aiohttp's own idea of a variable part has no braces in it; names of queues may.
VARIABLE = re.compile(r"\{(\w+)\}")
BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
VERBS = ("HEAD", "GET", "PUT", "POST", "DELETE", "OPTIONS")
# They change nothing, although they are a POST.
QUESTIONS = frozenset(
    {
        "/api/burrowmq/authenticate",
        "/api/burrowmq/hash-password",
        "/api/burrowmq/pages/policy-preview/{vhost}",
        *(route.path for route in definitions_diff.ROUTES),
    }
)
# Changes of which the path does not say what was done, and whose bodies hold no secret.
TOLD_WITH_BODY = frozenset(
    {
        *(route.path for route in operator.ROUTES if route.method == "POST"),
        "/api/burrowmq/backup",
        "/api/burrowmq/close-connections",
        "/api/burrowmq/delete-queue",
        "/api/burrowmq/members",
        "/api/burrowmq/user-limits/{user}",
        "/api/burrowmq/vhost-limits/{vhost}",
        "/api/burrowmq/vhosts/{vhost}",
        "/api/cluster-name",
    }
)
BODY_TOLD_MAX = 500
ALARMS = "X-Alarms"
# What RabbitMQ's log calls them.
MANAGEMENT, METRICS = "Management plugin", "Prometheus metrics"

HOST: web.AppKey[Node] = web.AppKey("host")
RATES: web.AppKey[Rates] = web.AppKey("rates", Rates)
ORIGINS: web.AppKey[Origins] = web.AppKey("origins", Origins)
IS_TRUSTED: web.AppKey[bool] = web.AppKey("is_trusted", bool)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def create_app(
    host: Node, trusted: bool, rates: Rates | None = None, callers: Callers | None = None
) -> web.Application:
    """The HTTP API and UI; `trusted` for the control socket."""
    config = host.process.config.management
    app = web.Application(
        middlewares=[_answer_errors],
        # 0 is no limit: what comes by the control socket is a file of this machine.
        client_max_size=0 if trusted else max(1, config.body_max_bytes),
    )
    app[HOST], app[RATES], app[IS_TRUSTED] = host, rates or Rates(), trusted
    app[CALLERS] = callers or Callers(host)
    app[ORIGINS] = Origins(config.allowed_origins, config.preflight_max_age_s)
    app.on_response_prepare.append(headers.complete)
    app.on_response_prepare.append(_name_origin)
    for resource in _resources():
        app.router.register_resource(resource)
    if not trusted:
        files.add_routes(app)
        downloads.add_routes(app)
    return app


@cache
def _resources() -> tuple[web.AbstractResource, ...]:
    """The API's routes as aiohttp has them: made once, for all listeners, since none belongs to an application."""
    table = web.UrlDispatcher()
    for route in ROUTES:
        endpoint = _endpoint(route)
        # As in RabbitMQ: HEAD wherever there is GET, and a slash at the end means nothing.
        pattern = VARIABLE.sub(r"{\1:[^/]+}", route.path)
        for path in (pattern, f"{pattern}/"):
            if route.method == "GET":
                table.add_get(path, endpoint)
            else:
                table.add_route(route.method, path, endpoint)
    return tuple(table.resources())


def _endpoint(route: Route) -> Handler:
    async def endpoint(request: web.Request) -> web.StreamResponse:
        if route.method != "GET":
            fault = request.app[ORIGINS].fault(request)
            if fault:
                raise ApiError(403, "forbidden", fault)
        caller = await _caller(request)
        if not caller.may("management") and route.path not in PUBLIC_PATHS:
            raise unauthorised(access.REFUSALS["management"])
        if route.path not in PUBLIC_PATHS and not caller.may(route.level):
            raise unauthorised(access.REFUSALS[route.level])
        if route.method != "GET" and route.path not in PUBLIC_PATHS and not _is_form(request):
            # What a handler looks up first must not go while a slow body is on its way.
            await request.read()
        host = request.app[HOST]
        if not route.is_about_process:
            running_of(host)
        call = Call(request, host, caller, request.app[RATES], route.is_paged)
        response = await route.handler(call)
        if route.method != "GET":
            if not route.is_about_process:
                done = commands.commit.durable if route.is_kept else commands.commit.turned
                await done(call.node)
            if _is_logged(route):
                body = await _told(route, request)
                host.process.observer.change_made(caller.name, route.method, _target(request), body)
        response = await encoded(request, response)
        if ASKED_BY_SCRIPT in request.headers and not route.is_about_process:
            _name_alarms(call, response)
        return response

    return endpoint


def _target(request: web.Request) -> str:
    """What was asked for, without a password."""
    return request.rel_url.raw_path if access.LOGIN in request.query else request.raw_path


def _is_form(request: web.Request) -> bool:
    """Whether its body is read part by part."""
    return request.content_type == "multipart/form-data"


async def _told(route: Route, request: web.Request) -> str:
    """What the log has of a change's body."""
    if route.path not in TOLD_WITH_BODY:
        return ""
    return (await request.read())[:BODY_TOLD_MAX].decode("utf-8", "replace")


def _name_alarms(call: Call, response: web.StreamResponse) -> None:
    """Every page of the UI says that something is wrong, whatever it is about. What is sent already says no more.

    Without an alarm it is empty: a browser that gets a 304 keeps what it is not told anew.
    """
    if not response.prepared:
        alarms = inspect.alarm_causes(call.node)
        response.headers[ALARMS] = ", ".join(row["resource"] for row in alarms)


async def _name_origin(request: web.Request, response: web.StreamResponse) -> None:
    request.app[ORIGINS].answer(request, response)


def _is_logged(route: Route) -> bool:
    """Whether a change is one that people look for in the log: all but questions, and what clients do too."""
    return route.path not in QUESTIONS | PUBLIC_PATHS and (
        route.level != "management" or route.method == "DELETE"
    )


async def _caller(request: web.Request) -> access.Caller:
    """Who this is.

    Raises: ApiError, LoginRequired.
    """
    if request.app[IS_TRUSTED]:
        if access.peer_is_owner(request):
            return access.TRUSTED
        raise unauthorised("Access refused.")
    if request.path in PUBLIC_PATHS:
        return access.Caller("", ())
    return await request.app[CALLERS].caller(request)


@web.middleware
async def _answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    if not _is_readable(request):
        return web.Response(status=400)
    try:
        response = await handler(request)
    except web.RequestPayloadError:
        response = reply({"error": "bad_request", "reason": "not_json"}, 400)
    except ConnectionError as error:
        if request.transport is None or request.transport.is_closing():
            raise  # who asked has gone
        response = _answer_broker(request, error)
    except LoginRequired:
        # A browser would ask for a password in a window of its own, and keep it for every page.
        is_script = ASKED_BY_SCRIPT in request.headers
        headers = {} if is_script else {"WWW-Authenticate": REALM}
        response = web.Response(status=401, headers=headers)
    except access.UnreadableLogin:
        response = web.Response(status=400)
    except ApiError as error:
        response = reply(error.body(), error.status)
        response.headers.update(error.headers)
    except web.HTTPMethodNotAllowed as error:
        allowed = error.allowed_methods | {"OPTIONS"}
        headers = {"Allow": ", ".join(verb for verb in VERBS if verb in allowed)}
        response = web.Response(status=200 if request.method == "OPTIONS" else 405, headers=headers)
    except web.HTTPNotFound:
        response = reply({"error": "Object Not Found", "reason": "Not Found"}, 404)
    except web.HTTPRequestEntityTooLarge:
        LOGGER.warning("body_refused %s %s", request.method, request.path)
        response = reply({"error": "bad_request", "reason": BODY_TOO_LARGE}, 400)
    except web.HTTPException:
        raise
    except Exception as error:  # noqa: BLE001 - the one place: a bug must answer, not hang the client
        response = _answer_broker(request, error)
    return response


def _is_readable(request: web.Request) -> bool:
    """Whether its escapes stand for UTF-8: others would become a part of a name as they are written."""
    target = request.raw_path
    if "%" not in target:
        return True
    if BROKEN_ESCAPE.search(target):
        return False
    try:
        unquote(request.rel_url.raw_path, errors="strict")
    except UnicodeDecodeError:
        return False
    return True


def _answer_broker(request: web.Request, error: Exception) -> web.Response:
    """The broker's refusals with their own words; anything else is a bug of ours."""
    refusal = refusal_of(error)
    if refusal is not None:
        return reply(refusal.body(), refusal.status)
    LOGGER.error("request_failed %s %s", request.method, request.path, exc_info=error)
    return web.Response(
        status=500,
        body=dump({"error": "internal_error", "reason": "see the log"}),
        content_type="application/json",
    )


class Management:
    """The running listeners."""

    def __init__(self, host: Node) -> None:
        self._host = host
        self._config = host.process.config
        kept = self._config.management
        self.rates = Rates(
            History(
                kept.global_retention or GLOBAL,
                kept.basic_retention or BASIC,
                self._config.collect_statistics_interval_ms,
            )
        )
        self._callers = Callers(host)
        self._runners: list[web.AppRunner] = []
        self._servers: list[asyncio.Server] = []
        self._sampler: asyncio.Task[None] | None = None
        # Weakly: a stopped application must not stay in memory until somebody looks again.
        self._sampled: Callable[[], RunningNode | None] = _nobody
        self._socket_path = settings.control_socket(self._config)
        self._socket_identity = (0, 0, 0)

    async def start(self, bound: BoundSockets) -> None:
        """Serve on the bound sockets, which are ours from now on."""
        if bound.control is not None:
            self._socket_identity = bound.control_identity
            runner = await self._runner(create_app(self._host, trusted=True, rates=self.rates))
            await web.SockSite(runner, bound.control).start()
        config = self._config
        for part, sockets, secure in (
            (MANAGEMENT, bound.api, None),
            (MANAGEMENT, bound.secure_api, config.management),
            (METRICS, bound.prometheus, None),
            (METRICS, bound.secure_prometheus, config.prometheus),
        ):
            if not sockets:
                continue
            if part == MANAGEMENT:
                app = create_app(self._host, False, self.rates, self._callers)
            else:
                app = prometheus.create_app(self._host, self._callers)
            await self._serve(app, sockets, secure)
            for sock in sockets:
                self._host.process.observer.http_listener_started(
                    part, address_of(sock), secure is not None
                )
        self._sampler = asyncio.get_running_loop().create_task(self._sample_for_ever())

    async def _serve(
        self, app: web.Application, sockets: Sequence[socket.socket], secure: Any = None
    ) -> None:
        """Serve on sockets, with TLS when a part of the configuration says how."""
        context = None if secure is None else self._host.tls_context(secure.tls)
        limits = deadlines.Deadlines(app)
        runner = await self._runner(app, keepalive_timeout=deadlines.IDLE_S)
        assert runner.server is not None, "it is set up"
        loop = asyncio.get_running_loop()
        timeout_s = None if context is None else deadlines.HEADER_S
        for sock in sockets:
            # What `web.SockSite` does, which has no say in what becomes of a socket that is silent.
            server = await loop.create_server(
                limits.accepting(runner.server),
                sock=sock,
                ssl=context,
                backlog=BACKLOG,
                ssl_handshake_timeout=timeout_s,
            )
            self._servers.append(server)

    async def _runner(self, app: web.Application, **options: Any) -> web.AppRunner:
        runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=1.0, logger=SERVER_LOGGER, **options
        )
        await runner.setup()
        self._runners.append(runner)
        return runner

    async def stop(self) -> None:
        """Close the listeners; requests in progress get a second."""
        if self._sampler is not None:
            self._sampler.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sampler
            self._sampler = None
        for server in self._servers:
            server.close()
        self._servers.clear()
        for runner in reversed(self._runners):
            await runner.cleanup()
        self._runners.clear()
        if self._socket_path:
            with contextlib.suppress(OSError):
                # While the application was stopped, another node may have taken the directory over.
                if identity_of(self._socket_path) == self._socket_identity:
                    os.unlink(self._socket_path)

    async def _sample_for_ever(self) -> None:
        interval_s = self._config.collect_statistics_interval_ms / 1000
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            try:
                await self.sample_what_runs()
            except Exception:
                # A bug in one figure must not end all rates.
                LOGGER.exception("sample_failed")
            due = max(due + interval_s, loop.time())
            await asyncio.sleep(due - loop.time())

    async def sample_what_runs(self) -> None:
        """Take a sample of the application, if there is one."""
        node = self._host.running
        if node is None or node is not self._sampled():
            # Its counters began anew: the samples before are of another application.
            self.rates.clear()
            self._sampled = _nobody if node is None else weakref.ref(node)
        if node is not None:
            await self.sample(node, node.scheduler.monotonic())

    async def sample(self, node: RunningNode, now_s: float) -> None:
        """Take one sample of everything, giving way to other work now and then."""
        for _ in sampling.steps(node, self.rates, int(now_s * 1000)):
            await asyncio.sleep(0)


def _nobody() -> None:
    return None


def prepare() -> None:
    """Make what lasts as long as the process, before the application has anything."""
    _resources()


async def start(host: Node, bound: BoundSockets) -> Management:
    """Serve what `management.bound_sockets.bind` bound."""
    management = Management(host)
    await management.start(bound)
    return management
