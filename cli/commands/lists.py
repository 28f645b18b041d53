"""The list_* commands: which columns there are, the banner, and what is asked of the node.

Owns no state. Column names, defaults and banners are rabbitmqctl 3.13's; `list_queues` in a vhost that does not exist
is an empty list with exit status 0, as in rabbitmqctl.
"""

from __future__ import annotations

from urllib.parse import urlencode

from burrowmq.cli.client import Refused
from burrowmq.cli.errors import DATAERR, OK, UNAVAILABLE, CliError, failure
from burrowmq.cli.invocation import Invocation
from burrowmq.cli.registry import Kind

MESSAGES = (
    "messages_ready messages_unacknowledged messages messages_ready_ram messages_unacknowledged_ram messages_ram"
    " messages_persistent message_bytes message_bytes_ready message_bytes_unacknowledged message_bytes_ram"
    " message_bytes_persistent head_message_timestamp"
)


QUEUES = Kind(
    "queues",
    "name messages",
    "name durable auto_delete arguments policy operator_policy effective_policy_definition pid owner_pid exclusive"
    " exclusive_consumer_pid exclusive_consumer_tag single_active_consumer_pid single_active_consumer_tag"
    f" {MESSAGES} disk_reads disk_writes consumers consumer_utilisation consumer_capacity memory slave_pids"
    " synchronised_slave_pids state type leader members online mirror_pids synchronised_mirror_pids",
)
EXCHANGES = Kind(
    "exchanges",
    "name type",
    "name type durable auto_delete internal arguments policy user_who_performed_action",
)
BINDINGS = Kind(
    "bindings",
    "source_name source_kind destination_name destination_kind routing_key arguments",
    "source_name source_kind destination_name destination_kind routing_key arguments vhost",
)
CONNECTIONS = Kind(
    "connections",
    "user peer_host peer_port state",
    "pid name port host peer_port peer_host ssl ssl_protocol ssl_key_exchange ssl_cipher ssl_hash peer_cert_subject"
    " peer_cert_issuer peer_cert_validity state channels protocol auth_mechanism user vhost timeout frame_max"
    " channel_max client_properties recv_oct recv_cnt send_oct send_cnt send_pend connected_at",
    has_vhost=False,
)
CHANNELS = Kind(
    "channels",
    "pid user consumer_count messages_unacknowledged",
    "pid connection name number user vhost transactional confirm consumer_count messages_unacknowledged"
    " messages_uncommitted acks_uncommitted messages_unconfirmed prefetch_count global_prefetch_count state",
    has_vhost=False,
)
CONSUMERS = Kind(
    "consumers",
    "queue_name channel_pid consumer_tag ack_required prefetch_count active arguments",
    "queue_name channel_pid consumer_tag ack_required prefetch_count active activity_status arguments",
)
VHOSTS = Kind(
    "vhosts",
    "name",
    "name description tags default_queue_type tracing cluster_state",
    has_vhost=False,
)


def _columns(kind: Kind, invocation: Invocation) -> list[str]:
    """The columns asked for; commas between names are fine. Raises: CliError 64."""
    asked = [name for word in invocation.args for name in word.split(",") if name]
    known = kind.columns.split()
    unknown = [name for name in asked if name not in known]
    if unknown:
        from burrowmq.cli.commands.help import argument_error

        raise argument_error(invocation, f"Info key(s) {','.join(unknown)} are not supported")
    return asked or kind.default.split()


def _print(invocation: Invocation, kind: Kind, columns: list[str], **query: str) -> int:
    asked = {"columns": ",".join(columns), **query}
    if kind.has_vhost:
        asked["vhost"] = invocation.vhost
    if invocation.formatter in ("pretty_table", "erlang"):
        asked["octets"] = "true"  # arguments that are no text are shown by their octets
    answer = invocation.node.get(f"/api/burrowmq/list/{kind.path}?{urlencode(asked)}")
    rows = answer["rows"]
    if "cluster_state" in columns and invocation.formatter in ("table", "pretty_table", "csv"):
        # A list of pairs of atoms: the table formatter writes atoms without quotes.
        place = columns.index("cluster_state")
        for row in rows:
            states = ", ".join(f"{{{node}, {state}}}" for node, state in row[place].items())
            row[place] = f"[{states}]"
    print_rows = invocation.whole_list if kind.path == "permissions" else invocation.rows
    print_rows(columns, rows)
    return OK


def queues(invocation: Invocation) -> int:
    """list_queues."""
    columns = _columns(QUEUES, invocation)
    seconds = invocation.node.timeout_s
    invocation.banner(f"Timeout: {'infinity' if seconds is None else float(seconds)} seconds ...")
    invocation.banner(f"Listing queues for vhost {invocation.vhost} ...")
    if "offline" in invocation.flags and "online" not in invocation.flags:
        invocation.rows(columns, [])  # a queue of a running node is online
        return OK
    return _print(invocation, QUEUES, columns)


def exchanges(invocation: Invocation) -> int:
    """list_exchanges."""
    columns = _columns(EXCHANGES, invocation)
    invocation.banner(f"Listing exchanges for vhost {invocation.vhost} ...")
    return _print(invocation, EXCHANGES, columns)


def bindings(invocation: Invocation) -> int:
    """list_bindings."""
    columns = _columns(BINDINGS, invocation)
    # RabbitMQ prints no space before these dots.
    invocation.banner(f"Listing bindings for vhost {invocation.vhost}...")
    return _print(invocation, BINDINGS, columns)


def connections(invocation: Invocation) -> int:
    """list_connections."""
    columns = _columns(CONNECTIONS, invocation)
    invocation.banner("Listing connections ...")
    return _print(invocation, CONNECTIONS, columns)


def channels(invocation: Invocation) -> int:
    """list_channels."""
    columns = _columns(CHANNELS, invocation)
    invocation.banner("Listing channels ...")
    return _print(invocation, CHANNELS, columns)


def consumers(invocation: Invocation) -> int:
    """list_consumers."""
    asked = _columns(CONSUMERS, invocation)
    # In rabbitmqctl's own order, whatever was asked for: scripts count columns.
    columns = [column for column in CONSUMERS.columns.split() if column in asked]
    invocation.banner(f"Listing consumers in vhost {invocation.vhost} ...")
    return _print(invocation, CONSUMERS, columns)


def vhosts(invocation: Invocation) -> int:
    """list_vhosts."""
    columns = _columns(VHOSTS, invocation)
    invocation.banner("Listing vhosts ...")
    return _print(invocation, VHOSTS, columns)


def users(invocation: Invocation) -> int:
    """list_users."""
    invocation.banner("Listing users ...")
    return _print(invocation, Kind("users", "", "", has_vhost=False), ["user", "tags"])


def permissions(invocation: Invocation) -> int:
    """list_permissions."""
    invocation.banner(f'Listing permissions for vhost "{invocation.vhost}" ...')
    try:
        return _print(
            invocation, Kind("permissions", "", ""), ["user", "configure", "write", "read"]
        )
    except Refused as refused:
        raise CliError(DATAERR, refused.reason) from refused


def user_permissions(invocation: Invocation) -> int:
    """list_user_permissions."""
    name = invocation.args[0]
    invocation.banner(f'Listing permissions for user "{name}" ...')
    known = invocation.node.get("/api/burrowmq/list/users?columns=user")
    if [name] not in known["rows"]:
        raise failure(f'User "{name}" does not exist', UNAVAILABLE)
    kind = Kind("permissions", "", "", has_vhost=False)
    return _print(invocation, kind, ["vhost", "configure", "write", "read"], user=name)
