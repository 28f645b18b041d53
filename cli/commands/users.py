"""Users, passwords, tags, permissions, virtual hosts.

Owns no state. Texts and exit codes are rabbitmqctl's; passwords travel over the control socket or whatever URL was
given. A password that is not on the command line, where every user of the machine could read it, is read from standard
input.
"""

from __future__ import annotations

import sys
from typing import Any

from burrowmq.cli.client import Refused, segment
from burrowmq.cli.commands.policies import listed
from burrowmq.cli.errors import (
    DATAERR,
    NOUSER,
    OK,
    SOFTWARE,
    UNAVAILABLE,
    USAGE,
    CliError,
    bad_argument,
    failure,
)
from burrowmq.cli.invocation import Invocation

ADVICE = (
    "Done. Don't forget to grant the user permissions to some virtual hosts!"
    " See 'rabbitmqctl help set_permissions' to learn more."
)


def _user(invocation: Invocation, name: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = invocation.node.get(f"/api/users/{segment(name)}")
    except Refused as refused:
        if refused.status == 404:
            return None
        raise
    return found


def _existing(invocation: Invocation, name: str) -> dict[str, Any]:
    found = _user(invocation, name)
    if found is None:
        raise CliError(NOUSER, f'Error:\nUser "{name}" does not exist')
    return found


def _put(invocation: Invocation, name: str, body: dict[str, Any]) -> None:
    invocation.node.request("PUT", f"/api/users/{segment(name)}", body)


def password_given(invocation: Invocation, place: int = 1) -> str:
    """The argument in that place, or a line of standard input. Raises: CliError 65."""
    if len(invocation.args) > place:
        password = invocation.args[place]
    elif sys.stdin.isatty():
        import getpass

        password = getpass.getpass("Password: ")
    else:
        password = sys.stdin.readline().rstrip("\n")
    if not password:
        raise CliError(DATAERR, "Error:\nPassword is not provided via argument or stdin")
    return password


def _name(invocation: Invocation) -> str:
    name = invocation.args[0]
    if not name:
        raise bad_argument("Bad argument: user cannot be an empty string")
    return name


def add_user(invocation: Invocation) -> int:
    """add_user NAME [PASSWORD]."""
    name, password = _name(invocation), password_given(invocation)
    invocation.banner(f'Adding user "{name}" ...')
    if _user(invocation, name) is not None:
        raise CliError(SOFTWARE, f'Error:\nUser "{name}" already exists')
    _put(invocation, name, {"password": password, "tags": []})
    invocation.banner(ADVICE)
    return OK


def delete_user(invocation: Invocation) -> int:
    """delete_user NAME."""
    name = _name(invocation)
    invocation.banner(f'Deleting user "{name}" ...')
    _existing(invocation, name)
    invocation.node.request("DELETE", f"/api/users/{segment(name)}")
    return OK


def change_password(invocation: Invocation) -> int:
    """change_password NAME [PASSWORD]."""
    name, password = _name(invocation), password_given(invocation)
    invocation.banner(f'Changing password for user "{name}" ...')
    _put(invocation, name, {"password": password, "tags": _existing(invocation, name)["tags"]})
    return OK


def clear_password(invocation: Invocation) -> int:
    """clear_password NAME: no password logs in any more."""
    name = _name(invocation)
    invocation.banner(f'Clearing password for user "{name}" ...')
    _put(invocation, name, {"password_hash": "", "tags": _existing(invocation, name)["tags"]})
    return OK


def authenticate_user(invocation: Invocation) -> int:
    """authenticate_user NAME [PASSWORD]."""
    name, password = _name(invocation), password_given(invocation)
    invocation.banner(f'Authenticating user "{name}" ...')
    try:
        invocation.node.request(
            "POST", "/api/burrowmq/authenticate", {"username": name, "password": password}
        )
    except Refused as refused:
        text = f"Error:\nError: failed to authenticate user \"{name}\"\nuser '{name}' - invalid credentials"
        raise CliError(DATAERR, text) from refused
    invocation.say("Success")
    return OK


def set_user_tags(invocation: Invocation) -> int:
    """set_user_tags NAME TAG..."""
    name = _name(invocation)
    tags = [tag for word in invocation.args[1:] for tag in word.split(",") if tag]
    invocation.banner(f'Setting tags for user "{name}" to [{", ".join(tags)}] ...')
    user = _existing(invocation, name)
    _put(invocation, name, {"password_hash": user["password_hash"], "tags": tags})
    return OK


def _permission_path(invocation: Invocation, name: str) -> str:
    return f"/api/permissions/{segment(invocation.vhost)}/{segment(name)}"


def set_permissions(invocation: Invocation) -> int:
    """set_permissions NAME CONFIGURE WRITE READ."""
    name, configure, write, read = invocation.args
    invocation.banner(f'Setting permissions for user "{name}" in vhost "{invocation.vhost}" ...')
    _existing(invocation, name)
    body = {"configure": configure, "write": write, "read": read}
    try:
        invocation.node.request("PUT", _permission_path(invocation, name), body)
    except Refused as refused:
        raise failure(_vhost_text(invocation, refused), UNAVAILABLE) from refused
    return OK


def set_permissions_globally(invocation: Invocation) -> int:
    """set_permissions_globally NAME CONFIGURE WRITE READ."""
    name, configure, write, read = invocation.args
    invocation.banner(f'Setting permissions for user "{name}" in all virtual hosts ...')
    _existing(invocation, name)
    body = {"configure": configure, "write": write, "read": read}
    for row in invocation.node.get("/api/vhosts?columns=name"):
        path = f"/api/permissions/{segment(row['name'])}/{segment(name)}"
        try:
            invocation.node.request("PUT", path, body)
        except Refused as refused:
            raise failure(refused.reason, UNAVAILABLE) from refused
    return OK


def _vhost_text(invocation: Invocation, refused: Refused) -> str:
    """Why permissions were refused to a user that is there."""
    if refused.status == 404 or refused.reason == "vhost_or_user_not_found":
        return f"Virtual host {invocation.vhost} does not exist"
    return refused.reason


def clear_permissions(invocation: Invocation) -> int:
    """clear_permissions NAME."""
    name = _name(invocation)
    invocation.banner(f'Clearing permissions for user "{name}" in vhost "{invocation.vhost}" ...')
    _existing(invocation, name)
    try:
        invocation.node.request("DELETE", _permission_path(invocation, name))
    except Refused as refused:
        # Clearing a permission that does not exist is no error; a virtual host that does not exist is one.
        if refused.status != 404 or not _has_vhost(invocation, invocation.vhost):
            raise failure(_vhost_text(invocation, refused), UNAVAILABLE) from refused
    return OK


def _has_vhost(invocation: Invocation, name: str) -> bool:
    try:
        invocation.node.get(f"/api/vhosts/{segment(name)}?columns=name")
    except Refused:
        return False
    return True


def _topic_path(invocation: Invocation, name: str) -> str:
    return f"/api/topic-permissions/{segment(invocation.vhost)}/{segment(name)}"


def _change_topic_permissions(invocation: Invocation, method: str, path: str, body: Any) -> int:
    name = invocation.args[0]
    if _user(invocation, name) is None:
        raise CliError(NOUSER, f"Error:\nUser {name} does not exist")
    try:
        invocation.node.request(method, path, body)
    except Refused as refused:
        if not _has_vhost(invocation, invocation.vhost):
            raise failure(f"Virtual host {invocation.vhost} does not exist") from refused
        # Clearing what is not there is fine.
        if refused.status != 404:
            raise failure(_topic_text(refused)) from refused
    return OK


def _topic_text(refused: Refused) -> str:
    """The API tells a bad pattern as RabbitMQ's does, as a term: the pattern, what is wrong and where."""
    match refused.body.get("reason"):
        case ["invalid_regexp", _, [str(what), _]]:
            return f"invalid regular expression: {what}"
    return refused.reason


def set_topic_permissions(invocation: Invocation) -> int:
    """set_topic_permissions NAME EXCHANGE WRITE READ."""
    name, exchange, write, read = invocation.args
    invocation.banner(
        f'Setting topic permissions on "{exchange}" for user "{name}"'
        f' in vhost "{invocation.vhost}" ...'
    )
    body = {"exchange": exchange, "write": write, "read": read}
    return _change_topic_permissions(invocation, "PUT", _topic_path(invocation, name), body)


def clear_topic_permissions(invocation: Invocation) -> int:
    """clear_topic_permissions NAME [EXCHANGE]."""
    name, exchange = invocation.args[0], invocation.args[1:]
    on = f' on "{exchange[0]}"' if exchange else ""
    invocation.banner(
        f'Clearing topic permissions{on} for user "{name}" in vhost "{invocation.vhost}" ...'
    )
    path = "/".join([_topic_path(invocation, name), *(segment(each) for each in exchange)])
    return _change_topic_permissions(invocation, "DELETE", path, None)


def list_topic_permissions(invocation: Invocation) -> int:
    """list_topic_permissions."""
    invocation.banner(f'Listing topic permissions for vhost "{invocation.vhost}" ...')
    columns = ["user", "exchange", "write", "read"]
    return listed(invocation, "topic_permissions", columns, vhost=invocation.vhost)


def list_user_topic_permissions(invocation: Invocation) -> int:
    """list_user_topic_permissions NAME; rabbitmqctl prints no head row here."""
    name = _name(invocation)
    invocation.banner(f'Listing topic permissions for user "{name}" ...')
    if _user(invocation, name) is None:
        raise failure(f'{{:no_such_user, "{name}"}}', UNAVAILABLE)
    invocation.flags.add("no-table-headers")
    columns = ["vhost", "exchange", "write", "read"]
    return listed(invocation, "topic_permissions", columns, user=name)


def add_vhost(invocation: Invocation) -> int:
    """add_vhost NAME; an existing one stays as it is."""
    name = invocation.args[0]
    if not name:
        raise bad_argument("Bad argument: vhost cannot be an empty string")
    invocation.banner(f'Adding vhost "{name}" ...')
    if not _has_vhost(invocation, name):
        _describe_vhost(
            invocation,
            "PUT",
            f"/api/vhosts/{segment(name)}",
            {"description": "", "tags": ""} | _metadata(invocation),
        )
    return OK


def _metadata(invocation: Invocation) -> dict[str, str]:
    """What the options say of a vhost, by the names of the API."""
    options = {
        "description": "description",
        "tags": "tags",
        "default-queue-type": "default_queue_type",
    }
    values = invocation.values
    return {key: values[option] for option, key in options.items() if option in values}


def _describe_vhost(invocation: Invocation, method: str, path: str, body: dict[str, str]) -> None:
    """Make or change a vhost. Raises: CliError 64 for an unknown queue type."""
    try:
        invocation.node.request(method, path, body)
    except Refused as refused:
        if refused.reason.startswith("Unsupported default queue type"):
            raise CliError(USAGE, f"Error:\n{refused.reason}") from refused
        raise


def update_vhost_metadata(invocation: Invocation) -> int:
    """update_vhost_metadata NAME with at least one of --description, --tags, --default-queue-type."""
    name, metadata = invocation.args[0], _metadata(invocation)
    if not metadata:
        raise CliError(USAGE, "Error (argument validation): not enough arguments.")
    invocation.banner(f'Updating metadata of vhost "{name}" ...')
    if not _has_vhost(invocation, name):
        raise CliError(DATAERR, f"Virtual host '{name}' does not exist")
    path = f"/api/burrowmq/vhosts/{segment(name)}"
    _describe_vhost(invocation, "POST", path, metadata)
    return OK


def _set_tracing(invocation: Invocation, *, is_on: bool) -> None:
    if not _has_vhost(invocation, invocation.vhost):
        raise CliError(DATAERR, f"Virtual host '{invocation.vhost}' does not exist")
    path = f"/api/burrowmq/vhosts/{segment(invocation.vhost)}"
    invocation.node.request("POST", path, {"tracing": is_on})


def trace_on(invocation: Invocation) -> int:
    """trace_on [--vhost VHOST]: until trace_off or the node's end."""
    invocation.banner(f'Starting tracing for vhost "{invocation.vhost}" ...')
    _set_tracing(invocation, is_on=True)
    invocation.say(f"Trace enabled for vhost {invocation.vhost}")
    return OK


def trace_off(invocation: Invocation) -> int:
    """trace_off [--vhost VHOST]."""
    invocation.banner(f'Stopping tracing for vhost "{invocation.vhost}" ...')
    _set_tracing(invocation, is_on=False)
    invocation.say(f"Trace disabled for vhost {invocation.vhost}")
    return OK


def delete_vhost(invocation: Invocation) -> int:
    """delete_vhost NAME."""
    name = invocation.args[0]
    invocation.banner(f'Deleting vhost "{name}" ...')
    try:
        invocation.node.request("DELETE", f"/api/vhosts/{segment(name)}")
    except Refused as refused:
        if refused.status == 404:
            raise CliError(DATAERR, f"Virtual host '{name}' does not exist") from refused
        raise
    return OK
