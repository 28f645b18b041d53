"""burrowctl import-from: from a running RabbitMQ to this node, definitions and then messages.

What has no equal here is told first (`cli.equivalents`), the rest of the definitions goes to this node, and then the
node moves the messages: this command starts that, shows how far it is, and may end and be run again at any time. Owns
no state; the node has the journals.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any
from urllib.parse import unquote, urlsplit

from burrowmq.cli import terms
from burrowmq.cli.client import NodeClient, Refused, Unreachable, check_url
from burrowmq.cli.equivalents import Finding, has_ttl, not_moved, taken
from burrowmq.cli.errors import DATAERR, OK, TEMPFAIL, UNAVAILABLE, USAGE, CliError, failure
from burrowmq.cli.invocation import Invocation

PATH = "/api/burrowmq/import"
COLUMNS = (
    "vhost,name,type,messages,exclusive,auto_delete,arguments,effective_policy_definition,consumers"
)
POLL_S = 0.5
FINDINGS = ["kind", "vhost", "name", "there", "here"]
REPORT = ["vhost", "queue", "there", "here", "moved", "left", "state"]
REQUEST_S = 120.0
WRONG_LOGIN = "Login failed"
"""Of a wrong name or password; RabbitMQ says other words to who may not."""
IMPORT_FROM_OPTIONS = """\
   <amqp-uri>               the broker there: amqp[s]://user:password@host[:port], without a virtual host
   --management <url>       its management API: http[s]://user:password@host:15672, of an administrator
   -p, --vhost <vhost>      only this virtual host
   --queues <pattern>       only the messages of queues whose name this regular expression finds; definitions come all
   --rate <number>          at most so many messages a second
   --keep                   copy: the messages stay there as well
   --no-publishers          nobody publishes there meanwhile: messages that are alike are counted, and come once
   --ttl-from-timestamp     TTLs go on from the times that messages bear, instead of beginning anew
   --dry-run                say what would be done, and change nothing
   --check <file>           say what of an exported file of definitions has no equal here; no broker is asked
   --stop                   end the import that is under way; the same command again goes on with it"""


def import_from(invocation: Invocation) -> int:
    """Import; with --check, --dry-run or --stop, less than that."""
    if "check" in invocation.values:
        return _check(invocation, invocation.values["check"])
    if "stop" in invocation.flags:
        return _stop(invocation)
    uri, there = _source(invocation)
    rate = _rate(invocation)
    document, findings = taken(_asked(there, "/api/definitions"))
    vhost = invocation.values.get("vhost")
    if vhost is not None and all(row.get("name") != vhost for row in document.get("vhosts", [])):
        raise CliError(DATAERR, f"Error:\nthere is no virtual host '{vhost}' there")
    queues = _queues(invocation, there)
    if "dry-run" in invocation.flags:
        return _tell(invocation, findings, queues)
    node = invocation.node
    invocation.banner(f"Importing from {there.where} into node {node.node_name} ...")
    _show_findings(invocation, findings)
    try:
        node.request("POST", "/api/definitions", _of_vhost(document, vhost))
    except Refused as error:
        raise CliError(DATAERR, f"Error:\nthe definitions are refused: {error.reason}") from error
    body = {
        "uri": uri,
        "queues": [{"vhost": q["vhost"], "name": q["name"]} for q in queues if not q["why_not"]],
        "keep": "keep" in invocation.flags,
        "no_publishers": "no-publishers" in invocation.flags,
        "ttl_from_timestamp": "ttl-from-timestamp" in invocation.flags,
        "rate": rate,
    }
    try:
        node.request("POST", PATH, body)
    except Refused as error:
        if error.status != 409:
            raise
        invocation.banner(_under_way(node.get(PATH)))
    return _follow(invocation, queues)


def _rate(invocation: Invocation) -> float:
    rate = invocation.number("rate", 0)
    if rate < 0:
        raise CliError(USAGE, "Error:\n--rate is so many messages a second, 0 for no limit")
    return rate


def _under_way(found: dict[str, Any]) -> str:
    """What is said to who would begin one, and cannot: what he asked for is not what is done."""
    what = "A copy" if found["keep"] else "A move"
    rate = f", at most {found['rate']:g} messages a second" if found["rate"] else ""
    return (
        f"{what} of {len(found['queues'])} queues from {found['from']} is under way already{rate}: its options"
        " count, and not those of this command. This is how far it is; 'import-from --stop' ends it."
    )


def _check(invocation: Invocation, path: str) -> int:
    """Say what of a file has no equal here."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError) as error:
        raise CliError(DATAERR, f"Error:\n{path} cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise CliError(DATAERR, f"Error:\n{path} has no JSON object in it")
    _, findings = taken(document)
    _show_findings(invocation, findings)
    return OK


def _stop(invocation: Invocation) -> int:
    try:
        found = invocation.node.request("DELETE", PATH)
    except Refused as error:
        if error.status != 404:
            raise
        raise failure("there was no import since the node started", UNAVAILABLE) from error
    _report(invocation, found, [])
    return OK


def _source(invocation: Invocation) -> tuple[str, NodeClient]:
    """The AMQP address, and a client of the management API there."""
    if not invocation.args:
        raise CliError(USAGE, "Error:\nimport-from needs an AMQP URI: amqp://user:password@host")
    uri = invocation.args[0]
    management = invocation.values.get("management", "")
    if not management:
        raise CliError(
            USAGE,
            "Error:\n--management is missing: http://user:password@host:15672 of the broker there",
        )
    check_url(management, "--management")
    _check_source(uri)
    return uri, NodeClient(url=management, data_dir="", timeout_s=REQUEST_S, node_option="")


def _check_source(uri: str) -> None:
    """Refuse what is no AMQP URI, or names a virtual host, which would not be looked at. Raises: CliError 64."""
    text = "the source must be an amqp or amqps URI with a host: amqp://user:password@host"
    try:
        parts = urlsplit(uri)
        is_good = parts.scheme in ("amqp", "amqps") and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise CliError(USAGE, f"Error:\n{text}") from error
    vhost = unquote(parts.path[1:])
    if is_good and vhost:
        text = f"leave '{vhost}' out of the URI: all virtual hosts are taken, or the one of --vhost"
    if vhost or not is_good:
        raise CliError(USAGE, f"Error:\n{text}")


def _asked(there: NodeClient, path: str) -> Any:
    """What the broker there answers. Raises: CliError 69, which says that it is that one."""
    try:
        return there.get(path)
    except Refused as error:
        text = f"the broker there ({there.where}) refuses: {error.reason}"
        if error.reason != WRONG_LOGIN:
            text += "; the user of --management needs the tag administrator"
    except Unreachable as error:
        text = (
            f"the management API of the broker there ({there.where}) is not reached: {error.reason}"
        )
    raise CliError(UNAVAILABLE, f"Error:\n{text}")


def _queues(invocation: Invocation, there: NodeClient) -> list[dict[str, Any]]:
    """The queues there that were asked for, each with why its messages stay, or an empty text."""
    try:
        pattern = re.compile(invocation.values.get("queues", ""))
    except re.error as error:
        raise CliError(USAGE, f"Error:\n--queues: {error}") from error
    vhost = invocation.values.get("vhost")
    is_copy = "keep" in invocation.flags
    found = []
    for row in _asked(there, f"/api/queues?columns={COLUMNS}"):
        if (vhost is None or row["vhost"] == vhost) and pattern.search(row["name"]):
            why_not = not_moved(row, is_copy=is_copy)
            found.append({**row, "why_not": why_not, "messages": row.get("messages") or 0})
    if "queues" in invocation.values and not found:
        raise CliError(DATAERR, f"Error:\nno queue there has a name with '{pattern.pattern}' in it")
    return found


def _of_vhost(document: dict[str, Any], vhost: str | None) -> dict[str, Any]:
    """With --vhost, what belongs to that one: users come with it, other virtual hosts do not."""
    if vhost is None:
        return document
    result = dict(document)
    for section, rows in document.items():
        if not isinstance(rows, list):
            continue
        if section == "vhosts":
            result[section] = [row for row in rows if row.get("name") == vhost]
        else:
            result[section] = [row for row in rows if row.get("vhost", vhost) == vhost]
    return result


def _tell(invocation: Invocation, findings: list[Finding], queues: list[dict[str, Any]]) -> int:
    """--dry-run: what would be done."""
    if invocation.is_machine_readable:
        told = {"findings": [each._asdict() for each in findings], "queues": queues}
        invocation.say(terms.compact(told))
        return OK
    _show_findings(invocation, findings)
    has_times, is_copy = "ttl-from-timestamp" in invocation.flags, "keep" in invocation.flags
    rows = [
        [q["vhost"], q["name"], q["messages"],
         q["why_not"] or _becomes(q, has_times=has_times, is_copy=is_copy)]
        for q in queues
    ]  # fmt: skip
    invocation.rows(["vhost", "queue", "there", "becomes"], rows)
    stay = [q["messages"] for q in queues if q["why_not"]]
    count = sum(q["messages"] for q in queues) - sum(stay)
    verb = "copied" if is_copy else "moved"
    invocation.banner(
        f"{count} messages of {len(queues) - len(stay)} queues would be {verb}, {sum(stay)} of {len(stay)} stay there"
    )
    return OK


def _becomes(queue: dict[str, Any], *, has_times: bool, is_copy: bool) -> str:
    """What --dry-run says of a queue that may go."""
    count = queue.get("consumers") or 0
    told = "would be copied" if is_copy else "would be moved"
    if count:
        who = "its consumer has" if count == 1 else f"its {count} consumers have"
        told += f" when {who} stopped"
    if has_ttl(queue):
        told += (
            ", its TTL goes on where a message has a time" if has_times else ", its TTL begins anew"
        )
    return told


def _show_findings(invocation: Invocation, findings: list[Finding]) -> None:
    if findings:
        invocation.rows(FINDINGS, [list(each) for each in findings])
    elif not invocation.is_machine_readable:
        invocation.say("Everything there has an equal here")


def _follow(invocation: Invocation, listed: list[dict[str, Any]]) -> int:
    """Show how far the node is until it has ended."""
    said, began = "", time.monotonic()
    while True:
        found = invocation.node.get(PATH)
        if found["state"] != "running":
            break
        told = _progress(found)
        if told != said:
            said = told
            invocation.banner(terms.escaped(f"{told} ({int(time.monotonic() - began)} s)"))
        time.sleep(POLL_S)
    _report(invocation, found, listed)
    return OK if found["state"] == "finished" else TEMPFAIL


def _progress(found: dict[str, Any]) -> str:
    """How far it is, and what one of the queues waits for."""
    queues = found["queues"]
    done = sum(each["state"] == "done" for each in queues)
    failed = sum(each["state"] == "failed" for each in queues)
    waits = [
        f"; {each['name']} waits: {each['reason']}"
        for each in queues
        if each["reason"] and each["state"] == "waiting"
    ]
    if found["waits"]:
        waits = [f"; it waits: {found['waits']}"]
    return (
        f"{found['moved']} messages are here, {done} of {len(queues)} queues are done"
        f"{f', {failed} have failed' if failed else ''}"
        f"{waits[0] if waits else ''}"
    )


def _state(row: dict[str, Any]) -> str:
    """How far a queue is, and what is to be said of it."""
    notes = [row["reason"]] if row["reason"] else []
    if row["maybe_twice"]:
        notes.append("messages that are alike may be here twice")
    if row.get("ttl_anew"):  # a node that is older than this command does not say it
        notes.append(f"the TTL of {row['ttl_anew']} began anew")
    return f"{row['state']}: {'; '.join(notes)}" if notes else str(row["state"])


def _report(invocation: Invocation, found: dict[str, Any], listed: list[dict[str, Any]]) -> None:
    """How it went; `listed` is what was there at first, as far as this command has looked."""
    stay = [each for each in listed if each["why_not"]]
    if invocation.is_machine_readable:
        invocation.say(terms.compact({**found, "not_moved": stay}))
        return
    at_first = {(each["vhost"], each["name"]): each["messages"] for each in listed}
    left, rows = sum(each["messages"] for each in stay), []
    for each in found["queues"]:
        there, still = each["there"], each["left"]
        if each["state"] == "failed" and not there:  # it was not reached
            there = still = at_first.get((each["vhost"], each["name"]), 0)
        left += still
        rows.append([each["vhost"], each["name"], there, each["here"], each["moved"], still, _state(each)])  # fmt: skip
    rows += [
        [each["vhost"], each["name"], each["messages"], 0, 0, each["messages"], each["why_not"]]
        for each in stay
    ]
    invocation.rows(REPORT, rows)
    invocation.banner(
        f"The import has {found['state']}: {found['moved']} messages are here, {left} are left there"
    )
