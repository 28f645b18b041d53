"""An S3 server for tests (moto, in a thread), and a proxy in front of one that loses and forges answers.

State: the server's bucket; the proxy's faults, in turn, at requests that a seed chooses. What the proxy does to a request:

    lost      it is done, and the connection breaks in place of the answer
    refused   nothing is done, the answer is 503
    conflict  nothing is done, the answer is 409
    taken     nothing is done, the answer is 412, as if the name were taken
    stall     it is done, later

A conditional write may meet each of them, other requests all but `conflict` and `taken`.
"""

from __future__ import annotations

import http.client
import itertools
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

BUCKET = "bucket"
FAULTS = ("lost", "refused", "conflict", "taken", "stall")
OPERATIONS = ("create", "put", "get", "head", "list", "delete")
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
REGION = "us-east-1"
_STATUS = {"refused": 503, "conflict": 409, "taken": 412}
_OF_CREATE = ("conflict", "taken")
_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}
STALL_S = 0.3


@contextmanager
def s3_server() -> Iterator[str]:
    """Give the URL of a server with a bucket."""
    from moto.s3.responses import S3Response
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    put = S3Response.put_object
    one_at_a_time = threading.Lock()

    def put_alone(response: S3Response) -> Any:
        """It looks for `If-None-Match` and then writes: on S3 that is one step."""
        with one_at_a_time:
            return put(response)

    S3Response.put_object = put_alone
    server.start()
    try:
        host, port = server.get_host_and_port()
        connection = http.client.HTTPConnection(host, port)
        connection.request("POST", "/moto-api/reset")
        assert connection.getresponse().read()
        connection.request("PUT", f"/{BUCKET}", headers={"Host": "s3.amazonaws.com"})
        assert connection.getresponse().status == http.HTTPStatus.OK
        connection.close()
        yield f"http://{host}:{port}"
    finally:
        server.stop()
        S3Response.put_object = put


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer is two writes
    server: FaultProxy

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        is_conditional = self.headers.get("If-None-Match") is not None
        fault = self.server.choose(_operation(self.command, self.path, is_conditional))
        if fault in _STATUS:
            self._answer(_STATUS[fault], [], b"")
            return
        if fault == "stall":
            time.sleep(self.server.stall_s)
        status, headers, answer = self._ask(body)
        if fault == "lost":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self._answer(status, headers, answer)

    do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = _handle  # noqa: N815 - http.server's names

    def _ask(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        upstream = urlsplit(self.server.upstream)
        connection = http.client.HTTPConnection(upstream.hostname or "", upstream.port)
        try:
            headers = dict(self.headers.items())
            connection.request(self.command, self.path, body=body, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response(status)
        length = str(len(body))
        for name, value in headers:
            if name.lower() == "content-length" and self.command == "HEAD":
                length = value
            elif name.lower() not in _HOP_BY_HOP:
                self.send_header(name, value)
        self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(body)


def _operation(method: str, path: str, is_conditional: bool) -> str:
    """Say which of a store's operations a request belongs to; `get` and `open` look the same."""
    if method == "PUT":
        return "create" if is_conditional else "put"
    if method == "GET":
        return "list" if "list-type=" in path else "get"
    return "head" if method == "HEAD" else "delete"


class FaultProxy(ThreadingHTTPServer):
    """Forwards to a server, and fails a part of the requests."""

    daemon_threads = True
    request_queue_size = 1024

    def __init__(
        self,
        upstream: str,
        seed: int,
        share: float,
        faults: Sequence[str] = FAULTS,
        stall_s: float = STALL_S,
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = upstream
        self.stall_s = stall_s
        self.share = share
        self.done: Counter[tuple[str, str]] = Counter()
        """How many requests of each operation had each fault, "" for none."""
        self._chosen = random.Random(seed)
        # In turn, so that a short run has all of them.
        plain = [fault for fault in faults if fault not in _OF_CREATE]
        self._faults = (itertools.cycle(plain), itertools.cycle(faults))
        self._lock = threading.Lock()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no error here."""

    def choose(self, operation: str) -> str:
        """Say what becomes of a request, "" for nothing."""
        with self._lock:
            faults = self._faults[operation == "create"]
            fault = next(faults) if self._chosen.random() < self.share else ""
            self.done[operation, fault] += 1
        return fault

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.server_address[1]}"


def faults_of(operation: str) -> tuple[str, ...]:
    """Return what the requests of an operation may meet."""
    return tuple(each for each in FAULTS if operation == "create" or each not in _OF_CREATE)


@contextmanager
def fault_proxy(
    upstream: str,
    seed: int,
    share: float,
    faults: Sequence[str] = FAULTS,
    stall_s: float = STALL_S,
) -> Iterator[FaultProxy]:
    """Give a proxy that fails this share of the requests."""
    proxy = FaultProxy(upstream, seed, share, faults, stall_s)
    thread = threading.Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()
