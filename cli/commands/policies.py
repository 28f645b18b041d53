"""Policies, operator policies and runtime parameters.

Owns no state. Banners, refusals and exit codes are rabbitmqctl's: a policy that RabbitMQ would not take is exit 69
with the reasons below `Validation failed`, a virtual host that does not exist is exit 65 without `Error:`, a policy
that is not there cannot be cleared (69).
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

from burrowmq.cli.client import Refused, segment
from burrowmq.cli.errors import DATAERR, OK, UNAVAILABLE, USAGE, CliError, failure
from burrowmq.cli.invocation import Invocation

COLUMNS = ["vhost", "name", "pattern", "apply-to", "definition", "priority"]


def parsed(text: str) -> Any:
    """The JSON of an argument. Raises: CliError 69."""
    try:
        value = json.loads(text)
        json.dumps(value, allow_nan=False)  # Python reads NaN and 1e999, which are no JSON
    except RecursionError as error:
        raise failure("JSON decoding error. Reason: nested too deeply") from error
    except ValueError as error:
        raise failure(f"JSON decoding error. Reason: {error}") from error
    return value


def without_vhost(invocation: Invocation) -> CliError:
    """The error for a virtual host that does not exist."""
    return CliError(DATAERR, f"Virtual host '{invocation.vhost}' does not exist")


def change(invocation: Invocation, method: str, path: str, body: Any = None) -> None:
    """One change in the chosen virtual host. Raises: CliError."""
    try:
        invocation.node.request(method, path, body)
    except Refused as refused:
        if refused.reason == "vhost_not_found":
            raise without_vhost(invocation) from refused
        if method == "DELETE" and refused.status == 404:
            raise failure("Parameter does not exist") from refused
        raise failure(_readable(refused.reason)) from refused


def _readable(reason: str) -> str:
    """A reason as text: the API escapes refused policies for browsers."""
    return reason.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _priority(invocation: Invocation) -> int:
    text = invocation.values.get("priority", "0")
    try:
        return int(text)
    except ValueError as error:
        from burrowmq.cli.commands.help import command_usage

        usage = command_usage(invocation.program, invocation.name)
        raise CliError(
            USAGE, f"Invalid options for this command:\n\n--priority : {text}\n\n{usage}"
        ) from error


def _set(invocation: Invocation, kind: str, label: str) -> int:
    name, pattern, definition = invocation.args
    priority = _priority(invocation)
    invocation.banner(
        f'Setting {label} "{name}" for pattern "{pattern}" to "{definition}"'
        f' with priority "{priority}" for vhost "{invocation.vhost}" ...'
    )
    body = {
        "pattern": pattern,
        "definition": parsed(definition),
        "priority": priority,
        "apply-to": invocation.values.get("apply-to", "all"),
    }
    change(invocation, "PUT", f"/api/{kind}/{segment(invocation.vhost)}/{segment(name)}", body)
    return OK


def _clear(invocation: Invocation, kind: str, label: str) -> int:
    name = invocation.args[0]
    invocation.banner(f'Clearing {label} "{name}" on vhost "{invocation.vhost}" ...')
    change(invocation, "DELETE", f"/api/{kind}/{segment(invocation.vhost)}/{segment(name)}")
    return OK


def listed(invocation: Invocation, kind: str, columns: list[str], **query: str) -> int:
    """Print a list of the chosen virtual host. Raises: CliError 65."""
    asked = urlencode({"columns": ",".join(columns), **query})
    try:
        answer = invocation.node.get(f"/api/burrowmq/list/{kind}?{asked}")
    except Refused as refused:
        raise CliError(DATAERR, refused.reason) from refused
    invocation.whole_list(columns, answer["rows"])
    return OK


def set_policy(invocation: Invocation) -> int:
    """set_policy NAME PATTERN DEFINITION [--priority N] [--apply-to KIND]."""
    return _set(invocation, "policies", "policy")


def clear_policy(invocation: Invocation) -> int:
    """clear_policy NAME."""
    return _clear(invocation, "policies", "policy")


def list_policies(invocation: Invocation) -> int:
    """list_policies, by ascending priority."""
    invocation.banner(f'Listing policies for vhost "{invocation.vhost}" ...')
    return listed(invocation, "policies", COLUMNS, vhost=invocation.vhost)


def set_operator_policy(invocation: Invocation) -> int:
    """set_operator_policy NAME PATTERN DEFINITION [--priority N] [--apply-to KIND]."""
    return _set(invocation, "operator-policies", "operator policy override")


def clear_operator_policy(invocation: Invocation) -> int:
    """clear_operator_policy NAME."""
    return _clear(invocation, "operator-policies", "operator policy")


def list_operator_policies(invocation: Invocation) -> int:
    """list_operator_policies."""
    invocation.banner(f'Listing operator policy overrides for vhost "{invocation.vhost}" ...')
    return listed(invocation, "operator_policies", COLUMNS, vhost=invocation.vhost)


# -- parameters --------------------------------------------------------------------------------------------------


def _parameter_path(invocation: Invocation) -> str:
    component, name = invocation.args[:2]
    return f"/api/parameters/{segment(component)}/{segment(invocation.vhost)}/{segment(name)}"


def set_parameter(invocation: Invocation) -> int:
    """set_parameter COMPONENT NAME VALUE."""
    component, name, value = invocation.args
    invocation.banner(
        f'Setting runtime parameter "{name}" for component "{component}" to "{value}"'
        f' in vhost "{invocation.vhost}" ...'
    )
    change(invocation, "PUT", _parameter_path(invocation), {"value": parsed(value)})
    return OK


def clear_parameter(invocation: Invocation) -> int:
    """clear_parameter COMPONENT NAME."""
    component, name = invocation.args
    invocation.banner(
        f'Clearing runtime parameter "{name}" for component "{component}"'
        f' on vhost "{invocation.vhost}" ...'
    )
    change(invocation, "DELETE", _parameter_path(invocation))
    return OK


def list_parameters(invocation: Invocation) -> int:
    """list_parameters: limits and operator policies."""
    invocation.banner(f'Listing runtime parameters for vhost "{invocation.vhost}" ...')
    columns = ["component", "name", "value"]
    return listed(invocation, "parameters", columns, vhost=invocation.vhost)


def set_global_parameter(invocation: Invocation) -> int:
    """set_global_parameter NAME VALUE."""
    name, value = invocation.args
    invocation.banner(f'Setting global runtime parameter "{name}" to "{value}" ...')
    path = f"/api/global-parameters/{segment(name)}"
    change(invocation, "PUT", path, {"value": parsed(value)})
    return OK


def clear_global_parameter(invocation: Invocation) -> int:
    """clear_global_parameter NAME."""
    name = invocation.args[0]
    invocation.banner(f'Clearing global runtime parameter "{name}" ...')
    change(invocation, "DELETE", f"/api/global-parameters/{segment(name)}")
    return OK


def list_global_parameters(invocation: Invocation) -> int:
    """list_global_parameters."""
    invocation.banner("Listing global runtime parameters ...")
    return listed(invocation, "global_parameters", ["name", "value"])


# -- limits ------------------------------------------------------------------------------------------------------


def set_vhost_limits(invocation: Invocation) -> int:
    """set_vhost_limits JSON: replaces all limits of the virtual host."""
    definition = invocation.args[0]
    invocation.banner(f'Setting vhost limits to "{definition}" for vhost "{invocation.vhost}" ...')
    path = f"/api/burrowmq/vhost-limits/{segment(invocation.vhost)}"
    change(invocation, "POST", path, {"value": parsed(definition)})
    return OK


def clear_vhost_limits(invocation: Invocation) -> int:
    """clear_vhost_limits."""
    invocation.banner(f'Clearing vhost "{invocation.vhost}" limits ...')
    path = f"/api/burrowmq/vhost-limits/{segment(invocation.vhost)}"
    change(invocation, "POST", path, {"value": {}})
    return OK


def list_vhost_limits(invocation: Invocation) -> int:
    """list_vhost_limits [--global]: one line of JSON, or a row a virtual host."""
    if "global" in invocation.flags:
        invocation.banner("Listing limits for all vhosts ...")
        rows = invocation.node.get("/api/vhost-limits")
        shown = [[row["vhost"], _json(row["value"])] for row in rows]
        invocation.whole_list(["vhost", "limits"], shown)
        return OK
    invocation.banner(f'Listing limits for vhost "{invocation.vhost}" ...')
    try:
        rows = invocation.node.get(f"/api/vhost-limits/{segment(invocation.vhost)}")
    except Refused as refused:
        raise without_vhost(invocation) from refused
    nothing = "[]" if invocation.is_machine_readable else ""
    invocation.say(_json(rows[0]["value"]) if rows else nothing)
    return OK


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def _change_user_limits(invocation: Invocation, body: dict[str, Any]) -> int:
    name = invocation.args[0]
    try:
        invocation.node.request("POST", f"/api/burrowmq/user-limits/{segment(name)}", body)
    except Refused as refused:
        raise _without_user(name) if refused.status == 404 else failure(refused.reason) from refused
    return OK


def _without_user(name: str) -> CliError:
    return failure(f'{{:no_such_user, "{name}"}}', UNAVAILABLE)


def set_user_limits(invocation: Invocation) -> int:
    """set_user_limits USER JSON: adds to the limits of the user."""
    name, definition = invocation.args
    invocation.banner(f'Setting user limits to "{definition}" for user "{name}" ...')
    return _change_user_limits(invocation, {"value": parsed(definition)})


def clear_user_limits(invocation: Invocation) -> int:
    """clear_user_limits USER LIMIT, or all."""
    name, limit = invocation.args
    what = "all limits" if limit == "all" else f'"{limit}" limit'
    invocation.banner(f'Clearing {what} for user "{name}" ...')
    return _change_user_limits(invocation, {"clear": limit})


def list_user_limits(invocation: Invocation) -> int:
    """list_user_limits [--user USER] [--global]: one line of JSON, or a row a user."""
    if "global" in invocation.flags:
        invocation.banner("Listing limits for all users ...")
        rows = invocation.node.get("/api/user-limits")
        shown = [[row["user"], _json(row["value"])] for row in rows]
        invocation.whole_list(["user", "limits"], shown)
        return OK
    name = invocation.values.get("user", "guest")
    invocation.banner(f'Listing limits for user "{name}" ...')
    try:
        rows = invocation.node.get(f"/api/user-limits/{segment(name)}")
    except Refused as refused:
        raise _without_user(name) if refused.status == 404 else refused from refused
    invocation.say(_json(rows[0]["value"] if rows else {}))
    return OK
