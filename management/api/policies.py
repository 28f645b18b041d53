"""/api/policies and /api/operator-policies: list, one, set, clear.

Owns no state. Both kinds share their handlers; they differ in who may do what, and in that RabbitMQ escapes `<` and
`>` in the refusals of ordinary policies only. Source: rabbit_mgmt_wm_policies, rabbit_mgmt_wm_policy,
rabbit_mgmt_wm_operator_policy (3.13).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from burrowmq.broker import inspect
from burrowmq.broker.rules.parameter_rules import ValidationFailed
from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers.listing import reply_list, reply_one
from burrowmq.management.answers.reply import (
    ApiError,
    Call,
    Route,
    bad_request,
    created,
    escaped,
    no_content,
    not_found,
    require_keys,
)

Handler = Callable[[Call], Awaitable[web.Response]]


async def _list(call: Call, *, is_operator: bool) -> web.Response:
    """The policies of a vhost, or of all."""
    rows = inspect.policies(call.node, call.vhost_or_all(), is_operator=is_operator)
    return await reply_list(call, rows)


def _row(call: Call, *, is_operator: bool) -> dict[str, Any]:
    for row in inspect.policies(call.node, call.vhost(), is_operator=is_operator):
        if row["name"] == call.path("name"):
            return row
    raise not_found()


async def _one(call: Call, *, is_operator: bool) -> web.Response:
    """One policy."""
    return reply_one(call, _row(call, is_operator=is_operator))


def _check_may_change(call: Call, *, is_operator: bool) -> None:
    """Operator policies can be kept from the API, not from who is on the node's machine. Raises: ApiError 405."""
    key = "management.restrictions.operator_policy_changes.disabled"
    config = call.host.process.config.management
    if is_operator and config.are_operator_policies_fixed and not call.caller.is_trusted:
        raise ApiError(405, "method_not_allowed", f"{key} is set", {"Allow": "HEAD, GET, OPTIONS"})


async def _put(call: Call, *, is_operator: bool) -> web.Response:
    """PUT pattern and definition, apply-to and priority if need be."""
    _check_may_change(call, is_operator=is_operator)
    vhost, name, body = call.target_vhost(), call.path("name"), await call.body()
    require_keys(body, "pattern", "definition")
    try:
        is_new = commands.parameters.put_policy(
            call.node, vhost, name, body, is_operator=is_operator
        )
    except ValidationFailed as error:
        text = str(error)
        raise bad_request(text if is_operator else escaped(text)) from error
    await commands.parameters.in_force(call.node, vhost)
    return created() if is_new else no_content()


async def _delete(call: Call, *, is_operator: bool) -> web.Response:
    """DELETE: what matches goes on without it."""
    _check_may_change(call, is_operator=is_operator)
    vhost = call.vhost()
    commands.parameters.delete_policy(call.node, vhost, call.path("name"), is_operator=is_operator)
    await commands.parameters.in_force(call.node, vhost)
    return no_content()


def _routes(prefix: str, *, is_operator: bool) -> tuple[Route, ...]:
    writer = "administrator" if is_operator else "policymaker"

    def of_kind(handler: Callable[..., Awaitable[web.Response]]) -> Handler:
        return partial(handler, is_operator=is_operator)

    one = f"{prefix}/{{vhost}}/{{name}}"
    return (
        Route("GET", prefix, of_kind(_list)),
        Route("GET", f"{prefix}/{{vhost}}", of_kind(_list)),
        Route("GET", one, of_kind(_one), "policymaker"),
        Route("PUT", one, of_kind(_put), writer),
        Route("DELETE", one, of_kind(_delete), writer),
    )


ROUTES = (
    *_routes("/api/policies", is_operator=False),
    *_routes("/api/operator-policies", is_operator=True),
)
