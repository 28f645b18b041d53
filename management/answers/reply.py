"""What an API handler is given and what it answers with.

Owns no state. `Call` is one request together with the node and the caller's rights; `ApiError` is every refusal, with
RabbitMQ's JSON bodies; `collect` makes long lists without holding the event loop. Source: rabbit_mgmt_util (3.13).
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, NamedTuple, TypeVar

from burrowmq.broker.node.node import Node
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.words import json_document
from burrowmq.management.aio import web
from burrowmq.management.answers.access import Caller
from burrowmq.management.answers.encoding import compress
from burrowmq.management.answers.rates import Rates
from burrowmq.management.answers.turns import ROWS_PER_TURN, gathered, pieces

T = TypeVar("T")

# Replies of fewer rows than this are sent whole, longer ones while they are made.
TEXTS_INLINE = 200
TEXTS_PER_TURN = 100
LOGGER = logging.getLogger("management")
ERLANG_COLUMNS = 78
DIGITS_MAX = 20
NOT_RUNNING = "not_running"
TWICE_ENCODED = (
    "invalid payload: the request body JSON-decoded to a string. Is the input doubly-JSON-encoded?"
)


class ApiError(Exception):
    """A refusal: status, RabbitMQ's error word and the reason (text or a list)."""

    def __init__(
        self, status: int, error: str, reason: Any, headers: dict[str, str] | None = None
    ) -> None:
        super().__init__(f"{status} {error}: {reason}")
        self.status = status
        self.error = error
        self.reason = reason
        self.headers = headers or {}

    def body(self) -> dict[str, Any]:
        """The JSON body."""
        return {"error": self.error, "reason": self.reason}


class LoginRequired(Exception):
    """No credentials came: 401 with an empty body, so that a browser asks for them."""


def not_found() -> ApiError:
    """The 404 that every missing object gets."""
    return ApiError(404, "Object Not Found", "Not Found")


def bad_request(reason: Any) -> ApiError:
    """A 400 with a reason."""
    return ApiError(400, "bad_request", reason)


def escaped(text: str) -> str:
    """A refusal as RabbitMQ writes some of them: for a browser that shows it as markup."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def running_of(host: Node) -> RunningNode:
    """The running application. Raises: ApiError 503 while there is none."""
    if host.running is None:
        raise ApiError(503, NOT_RUNNING, "the application is stopped: start_app starts it again")
    return host.running


def unauthorised(reason: str) -> ApiError:
    """Permission failures are 401, as in RabbitMQ."""
    return ApiError(401, "not_authorised", reason)


@dataclass(frozen=True, slots=True)
class Call:
    """One request."""

    request: web.Request
    host: Node
    caller: Caller
    rates: Rates
    is_paged: bool = True

    @property
    def asks_for_page(self) -> bool:
        """Whether the answer is one page of a list; RabbitMQ does not look at the parameter where it has no pages."""
        return self.is_paged and "page" in self.request.query

    @property
    def node(self) -> RunningNode:
        """The running application. Raises: ApiError 503 while there is none."""
        return running_of(self.host)

    def path(self, name: str) -> str:
        """A decoded path segment."""
        return self.request.match_info[name]

    def query(self, name: str, default: str = "") -> str:
        """A query parameter."""
        return self.request.query.get(name, default)

    def flag(self, name: str) -> bool:
        """A query parameter that is true or false."""
        return self.query(name) == "true"

    def vhost(self, *, is_question: bool = False) -> str:
        """The vhost of the path, which must exist and be open to the caller; `is_question`: whatever the method is."""
        name = self.path("vhost")
        if name not in self.node.vhosts:
            raise not_found()
        is_question |= self.request.method in ("GET", "HEAD")
        may = self.caller.may_see if is_question else self.caller.may_change
        if not may(self.node, name):
            raise unauthorised("User not authorised to access virtual host")
        return name

    def target_vhost(self) -> str:
        """The vhost of the path, in which something is to be made: RabbitMQ refuses a missing one in other words."""
        if self.path("vhost") not in self.node.vhosts:
            raise ApiError(404, "not_found", "vhost_not_found")
        return self.vhost()

    def vhost_or_all(self) -> str | None:
        """The vhost of the path, or None for a path without one."""
        return self.vhost() if "vhost" in self.request.match_info else None

    def check_node(self) -> None:
        """The node of the path must be this one. Raises: ApiError 404."""
        if self.path("node") != self.node.name:
            raise not_found()

    def check_node_of(self, body: dict[str, Any]) -> None:
        """The node on which a body would have something made must be this one. Raises: ApiError 400."""
        if "node" not in body:
            return
        name = text_of(body, "node")
        if "@" not in name:
            name += "@" + self.node.name.partition("@")[2]
        if name != self.node.name:
            shown = name if PLAIN_ATOM.fullmatch(name) else f"'{name}'"
            raise bad_request(f"Node {shown} could not be contacted")

    async def body(self) -> dict[str, Any]:
        """The JSON object of the body; an empty body is an empty object."""
        raw = await self.request.read()
        if not raw.strip():
            return {}
        try:
            value = json_document.parse(raw)
            check_texts(value)
        except ValueError as error:
            raise bad_request("not_json") from error
        if value is None:
            return {}
        if isinstance(value, str):
            raise bad_request(TWICE_ENCODED)
        if not isinstance(value, dict):
            raise bad_request("not_json")
        return value


Handler = Callable[["Call"], Awaitable[web.StreamResponse]]


PLAIN_ATOM = re.compile(r"[a-z][A-Za-z0-9_@]*")
"""The name of a node that Erlang writes without quotes."""
PAGED = frozenset(
    {
        "/api/channels",
        "/api/connections",
        "/api/connections/username/{user}",
        "/api/exchanges",
        "/api/exchanges/{vhost}",
        "/api/queues",
        "/api/queues/{vhost}",
        "/api/vhosts",
    }
)


class Route(NamedTuple):
    """One row of the API's table; `level` is the least user tag that may call it.

    `is_about_process`: it is answered, and changes something, whether the application runs or not. Not `is_kept`:
    nothing of what it does has to be on disk before it is answered, so that a full disk keeps no operator from it.
    """

    method: str
    path: str
    handler: Handler
    level: str = "management"
    is_about_process: bool = False
    is_kept: bool = True

    @property
    def is_paged(self) -> bool:
        """Whether it is a list that is shown in pages, if that is asked for: RabbitMQ's, and all of our own."""
        return self.path in PAGED or self.path.startswith("/api/burrowmq/")


async def collect(rows: Iterable[T]) -> list[T]:
    """The rows as a list; gives way to other work now and then."""
    return await gathered(rows, ROWS_PER_TURN)


def reply(value: Any, status: int = 200) -> web.Response:
    """A JSON reply."""
    return _json_response(dump(value), status)


async def reply_long(
    call: Call,
    things: Iterable[T],
    row: Callable[[T], Any],
    around: dict[str, Any] | None = None,
) -> web.StreamResponse:
    """A JSON array that may be long, or an object that ends in one (`around`, whose last value is replaced)."""
    head, tail = b"", b""
    if around is not None:
        head, _, tail = dump(around).rpartition(b"null")
    return await reply_texts(call, chain([head], array_texts(things, row), [tail]))


async def reply_rows(rows: Iterable[Any], around: dict[str, Any] | None = None) -> web.Response:
    """The same for rows that are few and long: they are made, and turned into text, in a thread, row by row.

    The encoder does not let go of the interpreter within one call.
    """
    return _json_response(await asyncio.to_thread(_dump_rows, rows, around), 200)


def array_texts(things: Iterable[T], row: Callable[[T], Any]) -> Iterator[bytes]:
    """A JSON array, a text for each row; a thing whose row is None is left out."""
    before = b"["
    for thing in things:
        found = row(thing)
        if found is None:
            yield b""  # to look at it took its time too
        else:
            yield before + dump(found)
            before = b","
    yield b"[]" if before == b"[" else b"]"


async def reply_whole(texts: Iterable[bytes]) -> web.Response:
    """JSON in pieces, which are put together some in each turn."""
    return _json_response(b"".join(await gathered(texts, TEXTS_PER_TURN)), 200)


async def reply_texts(
    call: Call, texts: Iterable[bytes], headers: Mapping[str, str] = {}
) -> web.StreamResponse:
    """JSON in pieces, of which there may be very many.

    If there are, the answer is sent while they are made, some in each turn, so that neither the rows nor their text are
    ever in memory as a whole, and a reader that is slow is waited for.
    """
    rest = iter(texts)
    # Before anything is said: an iterator may begin with a refusal.
    begin = list(islice(rest, TEXTS_INLINE))
    if len(begin) < TEXTS_INLINE:
        whole = _json_response(b"".join(begin), 200)
        whole.headers.update(headers)
        return whole
    if call.request.method == "HEAD":
        return web.Response(content_type="application/json", headers=headers)
    response = web.StreamResponse(headers=headers)
    response.content_type = "application/json"
    compress(call.request, response)
    try:
        await response.prepare(call.request)
        async for piece in pieces(chain(begin, rest), TEXTS_PER_TURN):
            await response.write(b"".join(piece))
        await response.write_eof()
    except ConnectionError:
        pass  # the reader has gone
    except Exception:
        # The status has been said: that the answer is cut off is all that can be.
        LOGGER.exception("request_failed %s %s", call.request.method, call.request.path)
        if call.request.transport is not None:
            call.request.transport.abort()
    return response


def _dump_rows(rows: Iterable[Any], around: dict[str, Any] | None) -> bytes:
    array = b"[" + b",".join([dump(row) for row in rows]) + b"]"
    if around is None:
        return array
    head, _, tail = dump(around).rpartition(b"null")
    return head + array + tail


def no_content() -> web.Response:
    """Done, nothing to say."""
    return web.Response(status=204)


def created() -> web.Response:
    """Made something new."""
    return web.Response(status=201)


def dump(value: Any) -> bytes:
    """Compact JSON; a float that is no number is null, since JSON has no name for it."""
    try:
        text = _text(value)
    except ValueError:
        text = _text(_with_numbers(value))
    return text.encode("utf-8", "replace")


_text = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


def _with_numbers(value: Any) -> Any:
    """The same with None for infinities and what is no number: clients put them into arguments and headers."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _with_numbers(each) for name, each in value.items()}
    return [_with_numbers(each) for each in value] if isinstance(value, list | tuple) else value


def _json_response(body: bytes, status: int) -> web.Response:
    return web.Response(body=body, status=status, content_type="application/json")


def check_texts(value: Any) -> None:
    """Refuse halves of surrogate pairs, which JSON can spell and no octets stand for. Raises: ValueError.

    Those that Python has for octets which are no UTF-8 are fine.
    """
    json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogateescape")


def text_of(body: dict[str, Any], name: str, default: str = "") -> str:
    """A text of a body: what is none would be kept as Python writes it."""
    value = body.get(name, default)
    if not isinstance(value, str):
        raise bad_request(["not_string", name])
    return value


def routing_key_of(body: dict[str, Any]) -> str:
    """The routing key of a body, empty where it is not said; a number is taken too, as in RabbitMQ."""
    key = body.get("routing_key", "")
    is_number = isinstance(key, int) and not isinstance(key, bool)
    return str(key) if is_number else text_of(body, "routing_key")


def arguments_of(body: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a body, none where they are not said; with a null in them they are refused, as in RabbitMQ."""
    return table_of(body.get("arguments") or {}, "arguments")


def table_of(table: Any, name: str) -> dict[str, Any]:
    """What a body has for a table of AMQP, as JSON; with a null in it it is refused, as in RabbitMQ."""
    if not isinstance(table, dict):
        raise bad_request(f"{name} must be an object")
    waiting: list[Any] = [table]
    for value in waiting:
        if value is None:
            raise bad_request("null_not_allowed")
        if isinstance(value, (dict, list)):
            waiting += value.values() if isinstance(value, dict) else value
    return table


def flag_of(body: dict[str, Any], name: str, default: bool) -> bool:
    """A boolean of a body; the texts "true" and "false" are taken too, because rabbitmqadmin sends them."""
    value = body.get(name, default)
    if value is True or value == "true":
        return True
    if value is False or value == "false":
        return False
    raise bad_request(["not_boolean", value])


def is_number(text: str) -> bool:
    """Whether a text is a number as clients send it: no digits but ASCII, and not thousands."""
    return text.isascii() and text.isdigit() and len(text) <= DIGITS_MAX


def number_of(body: dict[str, Any], name: str) -> int:
    """An integer of a body; a string of digits is taken too."""
    value = body.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and is_number(value.removeprefix("-")):
        return int(value)
    raise bad_request(["not_integer", value])


def require_keys(body: dict[str, Any], *names: str) -> None:
    """Refuse a body without these keys, naming all that are missing in RabbitMQ's words."""
    missing = [name for name in names if name not in body]
    if missing:
        told = [f"{{key_missing,{name}}}" for name in missing]
        flat = f"[{','.join(told)}]"
        # Erlang's printer puts each on a line of its own when they do not fit on one.
        broken = ",\n ".join(told)
        raise bad_request(flat if len(flat) <= ERLANG_COLUMNS else f"[{broken}]")
