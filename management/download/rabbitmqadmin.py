#!/usr/bin/env python3
"""rabbitmqadmin: the HTTP API from a command line, with the subcommands, options and formats of RabbitMQ's script.

Owns no state. One file without dependencies, for it is downloaded from /cli/rabbitmqadmin and run where no BurrowMQ is;
written for this project, not taken from RabbitMQ's (docs/adr/0024). Errors are `*** ` and a reason, exit status 1.
"""

from __future__ import annotations

import argparse
import base64
import configparser
import http.client
import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import quote, urlsplit

VERSION = "3.13.7"  # of RabbitMQ, whose script this stands for
USUAL_CONFIG = "~/.rabbitmqadmin.conf"
FORMATS = ("table", "tsv", "long", "kvp", "bash", "raw_json", "pretty_json")
LISTS = (
    "connections", "channels", "consumers", "exchanges", "queues", "bindings", "users", "vhosts", "permissions",
    "nodes", "parameters", "policies", "operator_policies", "vhost_limits",
)  # fmt: skip
IN_VHOST = frozenset(
    [
        "channels",
        "connections",
        "consumers",
        "exchanges",
        "queues",
        "bindings",
        "policies",
        "operator_policies",
        "vhost_limits",
    ]
)
FIRST = ("vhost", "name", "type", "source", "destination", "destination_type", "routing_key")
# The columns of a list whose command names none; the other kinds have all that there are.
USUAL = {
    "connections": ["name", "user", "channels"],
    "channels": ["name", "user"],
    "exchanges": ["name", "type"],
    "queues": ["name", "messages"],
    "bindings": ["source", "destination", "routing_key"],
    "vhosts": ["name", "messages"],
    "nodes": ["name", "type", "mem_used"],
    "overview": [
        "rabbitmq_version",
        "cluster_name",
        "queue_totals.messages",
        "object_totals.queues",
    ],
}
# Objects that are one cell, as JSON, and not columns of their own.
DOCUMENTS = {
    "parameters": "value",
    "policies": "definition",
    "operator_policies": "definition",
    "vhost_limits": "value",
}
# Of each kind: its path, what has to be said, what may be, and which of these are JSON.
Kind = tuple[str, tuple[str, ...], dict[str, Any], tuple[str, ...]]
DECLARE: dict[str, Kind] = {
    "exchange": ("exchanges/{vhost}/{name}", ("name", "type"),
                 {"auto_delete": "false", "durable": "true", "internal": "false", "arguments": {}}, ("arguments",)),
    "queue": ("queues/{vhost}/{name}", ("name",),
              {"auto_delete": "false", "durable": "true", "arguments": {}, "node": None, "queue_type": None},
              ("arguments",)),
    "binding": ("bindings/{vhost}/e/{source}/{destination_char}/{destination}", ("source", "destination"),
                {"destination_type": "queue", "routing_key": "", "arguments": {}}, ("arguments",)),
    "vhost": ("vhosts/{name}", ("name",), {"tracing": None, "description": None, "default_queue_type": None}, ()),
    "user": ("users/{name}", ("name", "tags"),
             {"password": None, "password_hash": None, "hashing_algorithm": None}, ()),
    "permission": ("permissions/{vhost}/{user}", ("vhost", "user", "configure", "write", "read"), {}, ()),
    "parameter": ("parameters/{component}/{vhost}/{name}", ("component", "name", "value"), {}, ("value",)),
    "policy": ("policies/{vhost}/{name}", ("name", "pattern", "definition"), {"priority": 0, "apply-to": None},
               ("definition", "priority")),
    "operator_policy": ("operator-policies/{vhost}/{name}", ("name", "pattern", "definition"),
                        {"priority": 0, "apply-to": None}, ("definition", "priority")),
    "vhost_limit": ("vhost-limits/{vhost}/{name}", ("vhost", "name", "value"), {}, ("value",)),
}  # fmt: skip
DELETE: dict[str, tuple[str, tuple[str, ...]]] = {
    "exchange": ("exchanges/{vhost}/{name}", ("name",)),
    "queue": ("queues/{vhost}/{name}", ("name",)),
    "binding": (
        "bindings/{vhost}/e/{source}/{destination_char}/{destination}/{properties_key}",
        ("source", "destination_type", "destination"),
    ),
    "vhost": ("vhosts/{name}", ("name",)),
    "user": ("users/{name}", ("name",)),
    "permission": ("permissions/{vhost}/{user}", ("vhost", "user")),
    "parameter": ("parameters/{component}/{vhost}/{name}", ("component", "name")),
    "policy": ("policies/{vhost}/{name}", ("name",)),
    "operator_policy": ("operator-policies/{vhost}/{name}", ("name",)),
    "vhost_limit": ("vhost-limits/{vhost}/{name}", ("vhost", "name")),
}
HELP = """subcommands:
  list KIND [COLUMN...]         {lists}
  show overview [COLUMN...]
  declare KIND NAME=VALUE...    {declare}
  delete KIND NAME=VALUE...     {delete}
  close connection name=...
  purge queue name=...
  publish routing_key=... [exchange=... payload=... payload_encoding=... properties=...]
  get queue=... [count=... ackmode=... encoding=... payload_file=...]
  export FILE
  import FILE
  help subcommands | config
"""
HELP_CONFIG = """~/.rabbitmqadmin.conf (or --config FILE) has sections; -N NAME chooses one, `default` otherwise:
  [default]
  hostname = localhost
  port = 15672
  username = guest
  password = guest
  vhost = /
  ssl = False
"""


class Failed(Exception):
    """Ends the program with its text."""


class Api:
    """Where the node is, and who asks."""

    def __init__(self, options: argparse.Namespace) -> None:
        scheme = "https" if options.ssl else "http"
        self.prefix = f"{scheme}://{options.host}:{options.port}{options.path_prefix}/api/"
        login = base64.b64encode(f"{options.username}:{options.password}".encode()).decode()
        self.headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}
        self.timeout = options.request_timeout
        self.context = ssl.create_default_context(cafile=options.ssl_ca_cert_file or None)
        if options.ssl_insecure or options.ssl_disable_hostname_verification:
            self.context.check_hostname = False
        if options.ssl_insecure:
            self.context.verify_mode = ssl.CERT_NONE
        if options.ssl_cert_file:
            self.context.load_cert_chain(options.ssl_cert_file, options.ssl_key_file or None)

    def ask(self, verb: str, path: str, body: Any = None) -> Any:
        """One request; the JSON of the answer. Raises: Failed."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.prefix + path, data, self.headers, method=verb)
        try:
            raw = self._answer(request, path)
        except http.client.InvalidURL as error:
            raise Failed(f"Could not connect: {error}") from error
        except http.client.BadStatusLine as error:  # an AMQP port says which AMQP it speaks
            why = "does not speak HTTP: the management API has another port"
            raise Failed(f"{self.prefix} {why} (15672 by custom)") from error
        except http.client.HTTPException as error:
            raise Failed(f"{self.prefix} does not speak HTTP as it should: {error!r}") from error
        try:
            return json.loads(raw) if raw else None
        except ValueError as error:
            why = "is no JSON: that is no management API"
            raise Failed(f"The answer of {self.prefix}{path} {why}") from error

    def _answer(self, request: urllib.request.Request, path: str) -> bytes:
        is_secure = self.prefix.startswith("https")
        try:
            with urllib.request.urlopen(
                request, timeout=self.timeout, context=self.context if is_secure else None
            ) as answer:
                raw: bytes = answer.read()
        except urllib.error.HTTPError as error:
            with error:
                raise Failed(_refusal(error, f"/api/{path}")) from error
        except OSError as error:
            raise Failed(f"Could not connect: {error}") from error
        return raw


def _refusal(error: urllib.error.HTTPError, path: str) -> str:
    if error.code == 401:
        return f"Access refused: {path}"
    if error.code == 404:
        return f"Not found: {path}"
    raw = error.read()
    try:
        reason = json.loads(raw)["reason"]
    except (ValueError, KeyError, TypeError):
        reason = raw.decode("utf-8", "replace")
    return reason if isinstance(reason, str) else json.dumps(reason)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("rabbitmqadmin", add_help=False)
    for names, default, about in (
        (("-H", "--host"), "localhost", "connect to this host"),
        (("-P", "--port"), 15672, "connect to this port"),
        (("--path-prefix",), "", "the path before /api"),
        (("-V", "--vhost"), None, "the virtual host of queues, exchanges and bindings"),
        (("-u", "--username"), "guest", "who asks"),
        (("-p", "--password"), "guest", "and the password"),
        (("-U", "--base-uri"), "", "http://host:port/prefix, instead of these"),
        (("-f", "--format"), "table", ", ".join(FORMATS)),
        (("-S", "--sort"), "", "sort by this column"),
        (("-d", "--depth"), None, "all columns, so deep into objects"),
        (("-c", "--config"), None, f"the file of settings, {USUAL_CONFIG} if none is named"),
        (("-N", "--node"), "default", "the section of that file"),
        (("-t", "--request-timeout"), 120, "seconds"),
        (("--ssl-ca-cert-file",), "", "whom to believe"),
        (("--ssl-cert-file",), "", "who this is"),
        (("--ssl-key-file",), "", "the key to it"),
    ):  # fmt: skip
        kind = int if isinstance(default, int) or names[0] == "-d" else str
        parser.add_argument(*names, default=default, help=about, type=kind)
    for names, about in (
        (("-h", "--help"), "this text"),
        (("-q", "--quiet"), "no words about what was done, no head line"),
        (("-s", "--ssl"), "by TLS"),
        (("-k", "--ssl-insecure"), "by TLS, whoever answers"),
        (("--ssl-disable-hostname-verification",), "by TLS, whatever name the certificate has"),
        (("-R", "--sort-reverse"), "the greatest first"),
        (("--bash-completion",), "print a script that completes words in bash"),
        (("--version",), "which version this is for"),
    ):
        parser.add_argument(*names, action="store_true", help=about)
    parser.add_argument("words", nargs="*")
    return parser


def _options(argv: list[str]) -> argparse.Namespace:
    """The command line over the file of settings. Raises: Failed."""
    parser = _parser()
    first = parser.parse_intermixed_args(argv)
    path = os.path.expanduser(first.config or USUAL_CONFIG)
    if first.config or os.path.exists(path):
        settings = _settings(path)
        if first.node not in settings:
            raise Failed(f"section '{first.node}' not found in {path}")
        named = {"hostname": "host", **{name: name for name in vars(first) if name != "words"}}
        for name, value in settings[first.node].items():
            if name in named:
                is_flag = isinstance(getattr(first, named[name]), bool)
                chosen = value.lower() == "true" if is_flag else value
                parser.set_defaults(**{named[name]: chosen})
        first = parser.parse_intermixed_args(argv)
    if first.format not in FORMATS:
        raise Failed(f"Format {first.format} not recognised")
    if first.base_uri:
        try:
            parts = urlsplit(first.base_uri)
            first.host, first.port = parts.hostname, parts.port or first.port
        except ValueError as error:
            raise Failed(f"{first.base_uri} is no address: {error}") from error
        first.ssl, first.path_prefix = parts.scheme == "https", parts.path.rstrip("/")
    return first


def _settings(path: str) -> configparser.ConfigParser:
    """What a file of settings says. Raises: Failed, OSError."""
    settings = configparser.ConfigParser(interpolation=None)
    try:
        with open(path, encoding="utf-8") as file:
            settings.read_file(file)
    except (configparser.Error, UnicodeDecodeError) as error:
        raise Failed(f"{path} is no file of settings: {' '.join(str(error).split())}") from error
    return settings


def _pairs(words: list[str], json_names: tuple[str, ...] = ()) -> dict[str, Any]:
    """NAME=VALUE words. Raises: Failed."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise Failed(f'Argument "{word}" not in the name=value format')
        try:
            found[name] = json.loads(value) if name in json_names else value
        except ValueError as error:
            raise Failed(f"Could not parse JSON:\n  {value}") from error
    return found


def _required(given: dict[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        if name not in given:
            raise Failed(f'mandatory argument "{name}" is required')


def _filled(path: str, given: dict[str, Any], options: argparse.Namespace) -> str:
    values = {"vhost": options.vhost or "/", **given}
    values["destination_char"] = (
        "e" if str(values.get("destination_type", "q")).startswith("e") else "q"
    )
    return path.format(**{name: quote(str(value), safe="") for name, value in values.items()})


def _declare(api: Api, options: argparse.Namespace, kind: str, words: list[str]) -> str:
    path, names, usual, json_names = DECLARE[kind]
    given = _pairs(words, json_names)
    if kind == "permission" and options.vhost:
        given.setdefault("vhost", options.vhost)
    _required(given, names)
    unknown = set(given) - set(names) - set(usual) - {"vhost"}
    if unknown:
        raise Failed(f'Argument "{min(unknown)}" is not recognised')
    body = {name: value for name, value in {**usual, **given}.items() if value is not None}
    if "queue_type" in body:
        body["arguments"] = {**body["arguments"], "x-queue-type": body.pop("queue_type")}
    api.ask("POST" if kind == "binding" else "PUT", _filled(path, body, options), body)
    return f"{kind} declared"


def _delete(api: Api, options: argparse.Namespace, kind: str, words: list[str]) -> str:
    path, names = DELETE[kind]
    given = _pairs(words)
    _required(given, names)
    if kind == "binding":
        given.setdefault("properties_key", "~")
    api.ask("DELETE", _filled(path, given, options))
    return f"{kind} deleted"


def _publish(api: Api, options: argparse.Namespace, words: list[str]) -> str:
    given = _pairs(words, ("properties",))
    _required(given, ("routing_key",))
    body = {"exchange": "amq.default", "properties": {}, "payload_encoding": "string", **given}
    if "payload" not in body:
        raw = sys.stdin.buffer.read()
        body["payload"] = base64.b64encode(raw).decode()
        body["payload_encoding"] = "base64"
    done = api.ask("POST", _filled("exchanges/{vhost}/{exchange}/publish", body, options), body)
    return "Message published" if done["routed"] else "Message published but NOT routed"


def _get(api: Api, options: argparse.Namespace, words: list[str]) -> list[dict[str, Any]] | str:
    usual = {"count": "1", "ackmode": "ack_requeue_true", "encoding": "auto"}
    given = {**usual, **_pairs(words)}
    _required(given, ("queue",))
    file = given.pop("payload_file", None)
    rows: list[dict[str, Any]] = api.ask(
        "POST", _filled("queues/{vhost}/{queue}/get", given, options), given
    )
    if file is None:
        return rows
    if len(rows) != 1:
        raise Failed(f"There are {len(rows)} messages, and one file")
    payload = rows[0]["payload"]
    is_text = rows[0]["payload_encoding"] == "string"
    with open(file, "wb") as target:
        target.write(payload.encode() if is_text else base64.b64decode(payload))
    return f"Written {rows[0]['payload_bytes']} bytes to {file}"


def _definitions(api: Api, options: argparse.Namespace, verb: str, words: list[str]) -> str:
    if len(words) != 1:
        raise Failed(f"{verb}: one file is needed")
    path = "definitions" + (f"/{quote(options.vhost, safe='')}" if options.vhost else "")
    where = f"{options.host}:{options.port}"
    if verb == "export":
        found = api.ask("GET", path)
        with open(words[0], "w", encoding="utf-8") as file:
            json.dump(found, file)
        return f'Exported definitions for {where} to "{words[0]}"'
    try:
        with open(words[0], encoding="utf-8") as file:
            given = json.load(file)
    except ValueError as error:
        raise Failed(f"{words[0]} is no JSON: {error}") from error
    api.ask("POST", path, given)
    return (
        f'Uploaded definitions from "{words[0]}" to {where}. The import process may take some time.'
    )


def _list(api: Api, options: argparse.Namespace, kind: str, columns: list[str]) -> Any:
    path = "overview" if kind == "overview" else kind.replace("_", "-")
    if options.vhost and kind in IN_VHOST:
        own = f"vhosts/{{}}/{kind}" if kind in ("channels", "connections") else f"{path}/{{}}"
        path = own.format(quote(options.vhost, safe=""))
    query = []
    if columns:
        query.append("columns=" + quote(",".join(columns)))
    if options.sort:
        query.append(
            f"sort={quote(options.sort)}" + ("&sort_reverse=true" if options.sort_reverse else "")
        )
    found = api.ask("GET", path + (f"?{'&'.join(query)}" if query else ""))
    return [found] if kind == "overview" else found


def _columns(options: argparse.Namespace) -> list[str]:
    """Those that the command names, or that its list has without; none: all that there are."""
    verb, kind, named = options.words[0], "".join(options.words[1:2]), options.words[2:]
    if verb not in ("list", "show"):
        return []
    has_usual = options.depth is None and "json" not in options.format
    return named or (USUAL.get(kind, []) if has_usual else [])


def run(options: argparse.Namespace) -> Any:
    """Rows to show, or a text. Raises: Failed."""
    words = options.words
    verb, kind, rest = words[0], words[1] if len(words) > 1 else "", words[2:]
    if verb == "help":
        return HELP_CONFIG if kind == "config" else usage()
    api = Api(options)
    for each, kinds, does in (("declare", DECLARE, _declare), ("delete", DELETE, _delete)):
        if verb == each and kind in kinds:
            return does(api, options, kind, rest)
    if (verb == "list" and kind in LISTS) or (verb, kind) == ("show", "overview"):
        return _list(api, options, kind, _columns(options))
    if (verb, kind) in (("close", "connection"), ("purge", "queue")):
        given = _pairs(rest)
        _required(given, ("name",))
        path = "connections/{name}" if verb == "close" else "queues/{vhost}/{name}/contents"
        api.ask("DELETE", _filled(path, given, options))
        return "connection closed" if verb == "close" else "queue purged"
    if verb in ("publish", "get"):
        return (_publish if verb == "publish" else _get)(api, options, words[1:])
    if verb in ("export", "import"):
        return _definitions(api, options, verb, words[1:])
    raise Failed(f"{' '.join(words[:2])}: no such subcommand; help subcommands lists them")


def usage() -> str:
    """The options and subcommands."""
    filled = HELP.format(lists=" ".join(LISTS), declare=" ".join(DECLARE), delete=" ".join(DELETE))
    return _parser().format_help() + "\n" + filled


def _flat(row: dict[str, Any], depth: int, document: str, prefix: str = "") -> dict[str, str]:
    """The cells of a row by column; what lies in an object is `a.b`, down to a depth."""
    found = {}
    for name, value in row.items():
        if not isinstance(value, dict) or name == document:
            found[prefix + name] = _text(value)
        elif depth > 1:
            found.update(_flat(value, depth - 1, document, f"{prefix}{name}."))
    return found


def _text(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return " ".join(value)
    if isinstance(value, (dict, list)):
        return json.dumps(value)
    return "" if value is None else str(value)


def shown(rows: list[dict[str, Any]], options: argparse.Namespace) -> str:
    """The rows in the format that was asked for."""
    if options.format == "raw_json":
        return json.dumps(rows, separators=(",", ":"), ensure_ascii=False)
    if options.format == "pretty_json":
        return json.dumps(rows, indent=2, sort_keys=True, ensure_ascii=False)
    if not rows:
        return "" if options.quiet else "No items"
    columns = _columns(options)
    depth = sys.maxsize if columns else options.depth or 1
    document = DOCUMENTS.get("".join(options.words[1:2]), "")
    flat = [_flat(row, depth, document) for row in rows]
    found = {name for row in flat for name in row}
    names = columns or [*(name for name in FIRST if name in found), *sorted(found - set(FIRST))]
    lines = [[row.get(name, "") for name in names] for row in flat]
    return _formatted(names, lines, options)


def _formatted(names: list[str], lines: list[list[str]], options: argparse.Namespace) -> str:
    if options.format == "bash":
        return " ".join(line[names.index("name")] for line in lines if "name" in names)
    if options.format == "kvp":
        return "\n".join(
            " ".join(f'{name}="{value}"' for name, value in zip(names, line)) for line in lines
        )
    if options.format == "long":
        width = max(map(len, names), default=0)
        rule = "-" * 80
        blocks = [
            "\n".join(f"{name:>{width}}: {value}" for name, value in zip(names, line))
            for line in lines
        ]
        return f"\n{rule}\n\n" + f"\n\n{rule}\n\n".join(blocks) + f"\n\n{rule}\n"
    if options.format == "tsv":
        head = [] if options.quiet else [names]
        return "\n".join("\t".join(line) for line in [*head, *lines])
    return _table(names, lines)


def _table(names: list[str], lines: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(names, *lines)]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"

    def row(cells: list[str], side: str = "<") -> str:
        padded = (f" {cell:{side}{width}} " for cell, width in zip(cells, widths))
        return "|" + "|".join(padded) + "|"

    return "\n".join([rule, row(names, "^"), rule, *map(row, lines), rule])


def completion() -> str:
    """A script for bash: subcommands, what each is about, formats and files."""
    verbs = {
        "list": LISTS,
        "show": ("overview",),
        "declare": DECLARE,
        "delete": DELETE,
        "close": ("connection",),
        "purge": ("queue",),
        "help": ("subcommands", "config"),
        "-f|--format": FORMATS,
    }
    rows = "".join(
        f"        {verb}) COMPREPLY=($(compgen -W '{' '.join(kinds)}' -- \"$word\")) ;;\n"
        for verb, kinds in verbs.items()
    )
    others = "list show declare delete close purge publish get export import help"
    return f"""# bash completion; source it, or put it into /etc/bash_completion.d
_rabbitmqadmin() {{
    local word=${{COMP_WORDS[COMP_CWORD]}}
    case ${{COMP_WORDS[COMP_CWORD-1]}} in
{rows}        export|import|-c|--config) COMPREPLY=($(compgen -f -- "$word")) ;;
        *) COMPREPLY=($(compgen -W '{others}' -- "$word")) ;;
    esac
}}
complete -F _rabbitmqadmin rabbitmqadmin"""


def main(argv: list[str] | None = None) -> int:
    """One subcommand; the exit status."""
    try:
        options = _options(sys.argv[1:] if argv is None else argv)
        if options.bash_completion or options.version:
            about = completion() if options.bash_completion else f"rabbitmqadmin {VERSION}"
            sys.stdout.write(about + "\n")
            return 0
        if options.help or not options.words:
            sys.stdout.write(usage())
            return 0 if options.help else 1
        found = run(options)
    except Failed as failed:
        sys.stderr.write(f"*** {failed}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"*** {error.filename}: {error.strerror}\n")
        return 1
    text = found if isinstance(found, str) else shown(found, options)
    if text and not (options.quiet and text is found):
        sys.stdout.write(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
