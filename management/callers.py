"""Who calls over TCP: the user behind a request's password.

State: the logins of the UI, and how many refused ones wait for their answer. A tool sends name and password with each
request; a browser posts them once to `/api/login` and has a cookie from then on, which page scripts cannot read, no
page of another origin makes it send, and with which only requests that bear `X-Requested-With` count. A wrong
password is answered late, and after too many of them from one place none is looked at (`broker.rules.failed_logins`,
which AMQP's logins fill as well): 429 with the seconds to wait.

Called by `management.server` for every request on TCP; the control socket has no passwords. Source:
rabbit_mgmt_util:is_authorized (3.13), whose texts these are.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import time

from burrowmq.broker.node.node import Node
from burrowmq.broker.rules.auth import LoginRefused, NotFromAfar, TooManyFailures, User
from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers import access
from burrowmq.management.answers.reply import ApiError, LoginRequired, running_of, unauthorised
from burrowmq.management.browser.logins import Logins

CALLERS: web.AppKey[Callers] = web.AppKey("callers")
ASKED_BY_SCRIPT = "X-Requested-With"
LOCALHOST_ONLY = "User can only log in via localhost"
# More are answered at once: by then their addresses are refused unheard.
WAITING_MAX = 1000


class Callers:
    """The users who call one listener or several."""

    def __init__(self, host: Node) -> None:
        self._host = host
        config, entropy = host.process.config, host.process.machine.entropy
        lifetime_s = config.management.login_session_timeout_min * 60.0
        self._logins = Logins(lifetime_s, entropy.token, time.monotonic)
        # Cookies do not tell ports apart: each node of a machine has its own.
        name = hashlib.sha256(config.node_name.encode()).hexdigest()[:8]
        self._cookie = f"burrowmq-{name}"
        self._waiting_count = 0

    async def caller(self, request: web.Request) -> access.Caller:
        """The user of a request.

        Raises: ApiError, LoginRequired.
        """
        credentials = access.basic_credentials(request)
        if credentials is None:
            return access.caller_of(self._user_of_cookie(request))
        return access.caller_of(await self._authenticate(request, *credentials))

    def _user_of_cookie(self, request: web.Request) -> User:
        token = request.cookies.get(self._cookie)
        if token is None or ASKED_BY_SCRIPT not in request.headers:
            raise LoginRequired
        auth = running_of(self._host).auth
        user = self._logins.user_of(token, auth.users)
        if user is None:
            raise LoginRequired
        try:
            auth.check_loopback(user.name, is_loopback=access.peer_is_loopback(request))
        except NotFromAfar as refusal:
            raise unauthorised(LOCALHOST_ONLY) from refusal
        return user

    async def log_in(
        self, request: web.Request, response: web.StreamResponse, name: str, password: str
    ) -> None:
        """Begin a login, whose cookie goes with the response.

        Raises: ApiError, also for a user whose tags let it see nothing.
        """
        user = await self._authenticate(request, name, password)
        if not access.caller_of(user).may("management"):
            raise unauthorised(access.REFUSALS["management"])
        self._set_cookie(request, response, self._logins.begin(user), int(self._logins.lifetime_s))

    def log_out(self, request: web.Request, response: web.StreamResponse) -> None:
        """End the login of a request, if there is one."""
        self._logins.end(request.cookies.get(self._cookie, ""))
        self._set_cookie(request, response, "", 0)

    def _set_cookie(
        self, request: web.Request, response: web.StreamResponse, token: str, max_age_s: int
    ) -> None:
        # Before a proxy that ends TLS the page knows best.
        is_secure = request.secure or request.headers.get("Origin", "").startswith("https:")
        response.set_cookie(
            self._cookie,
            token,
            max_age=max_age_s,
            path="/",
            secure=is_secure,
            httponly=True,
            samesite="Strict",
        )

    async def _authenticate(self, request: web.Request, name: str, password: str) -> User:
        """The user with a password.

        Raises: ApiError, a 503 while no application runs; LoginRequired, to which nobody listens any more.
        """
        node, address = running_of(self._host), request.remote
        if address is None:  # the socket was reset before its address was asked for
            raise LoginRequired
        try:
            return commands.users.authenticate(
                node,
                name,
                password,
                is_loopback=access.peer_is_loopback(request),
                address=address,
            )
        except LoginRefused as refusal:
            node.observer.login_refused(address, "HTTP", str(refusal))
            if isinstance(refusal, TooManyFailures):
                wait_s = math.ceil(refusal.wait_s)
                reason = f"too many failed logins from {address}, try again in {wait_s} s"
                raise ApiError(
                    429, "too_many_failed_logins", reason, {"Retry-After": str(wait_s)}
                ) from refusal
            await self._wait(node.auth.refusal_delay_s)
            if isinstance(refusal, NotFromAfar):
                raise unauthorised(LOCALHOST_ONLY) from refusal
            raise ApiError(401, "not_authorized", "Login failed") from refusal

    async def _wait(self, delay_s: float) -> None:
        if self._waiting_count < WAITING_MAX:
            self._waiting_count += 1
            try:
                await asyncio.sleep(delay_s)
            finally:
                self._waiting_count -= 1
