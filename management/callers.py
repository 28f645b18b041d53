"""Who calls over TCP: the user behind a request's password.

State: how many refused logins wait for their answer. A wrong password is answered late, and after too many of them
from one place none is looked at (`broker.rules.failed_logins`, which AMQP's logins fill as well): 429 with the seconds
to wait.

Called by `management.server` for every request on TCP; the control socket has no passwords. Source:
rabbit_mgmt_util:is_authorized (3.13), whose texts these are.
"""

from __future__ import annotations

import asyncio
import math

from burrowmq.broker.node.node import Node
from burrowmq.broker.rules.auth import LoginRefused, NotFromAfar, TooManyFailures, User
from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers import access
from burrowmq.management.answers.reply import ApiError, LoginRequired, running_of, unauthorised

# More are answered at once: by then their addresses are refused unheard.
WAITING_MAX = 1000


class Callers:
    """The users who call one listener or several."""

    def __init__(self, host: Node) -> None:
        self._host = host
        self._waiting_count = 0

    async def caller(self, request: web.Request) -> access.Caller:
        """The user of a request.

        Raises: ApiError, LoginRequired.
        """
        credentials = access.basic_credentials(request)
        if credentials is None:
            raise LoginRequired
        user = await self.log_in(request, *credentials)
        return access.Caller(user.name, tuple(str(tag) for tag in user.tags))

    async def log_in(self, request: web.Request, name: str, password: str) -> User:
        """The user with a password.

        Raises: ApiError, a 503 while no application runs.
        """
        node, address = running_of(self._host), request.remote or ""
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
                raise unauthorised("User can only log in via localhost") from refusal
            raise ApiError(401, "not_authorized", "Login failed") from refusal

    async def _wait(self, delay_s: float) -> None:
        if self._waiting_count < WAITING_MAX:
            self._waiting_count += 1
            try:
                await asyncio.sleep(delay_s)
            finally:
                self._waiting_count -= 1
