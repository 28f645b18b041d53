"""What the options of single commands mean, for `help COMMAND`.

Declarations only. Imported when somebody asks. An option that means something else at some command has a text of its
own there. Invariant: every option of `cli.registry` has a text, but for commands that say theirs themselves.
"""

from __future__ import annotations

OF_ALL = {
    "address": "the address to connect to instead of each listener's own",
    "address-family": "ipv4 or ipv6 (default: either)",
    "all": "all plugins",
    "apply-to": "queues, classic_queues, quorum_queues, streams, exchanges or all (default: all)",
    "client-port": "the port that the servers' clients connect to",
    "default-queue-type": "what a queue is whose declaration does not say it: classic, quorum or stream",
    "description": "a text for people",
    "details": "accepted; there is no more to say",
    "enabled": "only what is enabled",
    "errors-only": "only queues of which it could not be done",
    "force": "replace what is there",
    "format": "json, which is the default and the only one",
    "global": "all virtual hosts",
    "idempotent": "no error where the node does not run",
    "if-empty": "not while ready messages are in it",
    "if-unused": "not while it has consumers",
    "implicitly-enabled": "only what is enabled because another needs it",
    "limit": "at most so many (default: all)",
    "list-commands": "the names of all commands, one a line",
    "local": "queues of this node, which are all",
    "membership": "promotable or voter: both come to the same",
    "minimal": "names alone",
    "mirrored-as": "what durable queues become that a policy of the file mirrors: classic or quorum",
    "no-wait": "do not wait until it is done",
    "number": "so many lines (default: 50)",
    "object-type": "queue or exchange (default: queue)",
    "online": "queues of running nodes, which are all",
    "per-connection-delay": "milliseconds between two connections (default: 0)",
    "pid": "the number of the node's process, instead of a file that holds it",
    "preferred-leader-node": "the server that is to write it",
    "priority": "of several policies that match, the one with the highest holds (default: 0)",
    "queue-pattern": "only queues whose name this regular expression finds",
    "route-port": "the port that the servers connect to among themselves",
    "skip-if-unchanged": "accepted: what is there already does not change by an import",
    "start": "begin one now",
    "store": "the directory for what the servers keep",
    "tags": "separated by commas",
    "unit": "bytes, mb, mib, gb or gib (default: gb)",
    "used": "only those in use: none",
    "user": "only this user's",
    "verbose": "with versions, dependencies and what each is for",
    "vhost-pattern": "only virtual hosts whose name this regular expression finds",
    "wait": "wait until the process is gone, as it does anyway",
    "within": "how many units from now (default: 4)",
}
OF_ONE = {
    ("check_certificate_expiration", "unit"): "days, weeks, months or years (default: weeks)",
    ("cipher_suites", "format"): "openssl, erlang or map: names of OpenSSL in each",
    ("close_all_connections", "global"): "of all virtual hosts",
    ("cluster_config", "user"): "the name of the node's user there",
    **dict.fromkeys(
        ((name, "online") for name in ("directories", "disable", "enable", "is_enabled", "set")),
        "accepted: what is built in stays as it is",
    ),
}


def text_of(command: str, option: str) -> str:
    """What an option means at a command."""
    return OF_ONE.get((command, option)) or OF_ALL[option]
