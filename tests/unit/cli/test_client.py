"""Where the node is, and what happens when it is not there."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from burrowmq.cli.client import NodeClient
from burrowmq.cli.errors import CliError
from tests.support.certificates import Authority
from tests.support.served import Served, ctl, serving


def test_over_tcp_with_a_password(served: Served) -> None:
    url = f"http://guest:guest@127.0.0.1:{served.port}"
    assert ctl("--url", url, "-s", "list_queues", "name").out == "lazy\norders\n"
    # guest:guest when the URL names nobody.
    assert ctl("--url", f"http://127.0.0.1:{served.port}", "ping").code == 0
    wrong = ctl("--url", f"http://guest:no@127.0.0.1:{served.port}", "list_queues")
    assert (wrong.code, "Login failed" in wrong.err) == (69, True)


def test_a_node_that_is_down_is_named(tmp_path: Path) -> None:
    output = ctl("--data-dir", str(tmp_path), "-n", "other@localhost", "status")
    assert output.code == 69
    assert "unable to perform an operation on node 'other@localhost'" in output.err
    assert str(tmp_path / "control.sock") in output.err
    output = ctl("--url", "http://u:secret@127.0.0.1:1", "ping")
    assert output.code == 69
    assert "http://127.0.0.1:1" in output.err
    assert "secret" not in output.err


def test_a_resolver_that_does_not_answer_has_as_long_as_the_node(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: answers.wait(20))
    client = NodeClient(url="http://x.test:1", data_dir="", timeout_s=0.1, node_option="")
    with pytest.raises(CliError, match=r"no answer from http://x\.test:1 within 0\.1 seconds"):
        client.get("/api/overview")
    answers.set()


def test_a_host_that_is_none_is_said_to_be_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a traceback where no host can have that name."""
    output = ctl("--url", "http://a..b:15672", "ping")
    assert (output.code, "no host can be called a..b" in output.err) == (69, True)

    def unknown(*_: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    output = ctl("--url", "http://x.test:15672", "ping")
    assert (output.code, "Name or service not known" in output.err) == (69, True)


def test_an_address_of_a_link_is_reached_by_its_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def look_up(host: str, *_: object) -> None:
        asked.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    output = ctl("--url", "http://u:secret@[fe80::1%25eth0]:15672", "ping")
    assert (output.code, asked) == (69, ["fe80::1%eth0"])
    assert "attempted to contact: http://[fe80::1%eth0]:15672\n" in output.err


def test_a_url_that_is_none_is_refused() -> None:
    for url in ("ftp://h", "localhost:15672", "http://h:port", "http://:1", "u:secret@h"):
        output = ctl("--url", url, "ping")
        assert (output.code, "--url : " in output.err) == (64, True), url
        assert "secret" not in output.err


@contextmanager
def answering(*answers: bytes, every_s: float = 0.0) -> Iterator[str]:
    """A server that says the same to everybody, piece by piece; its URL."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with suppress(OSError):
                while True:
                    client, _ = server.accept()
                    with client:
                        client.recv(65536)
                        for piece in answers:
                            client.sendall(piece)
                            ended.wait(every_s)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}"
        finally:
            ended.set()
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def http_answer(status: str, body: bytes, length: int | None = None) -> bytes:
    """One of an HTTP server."""
    size = len(body) if length is None else length
    return f"HTTP/1.1 {status}\r\nContent-Length: {size}\r\n\r\n".encode() + body


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (http_answer("200 OK", b"hello"), "what answers there is no node of BurrowMQ: is it"),
        (http_answer("200 OK", b'{"a": 1}'), "what answers there is no node of BurrowMQ: is it"),
        (http_answer("200 OK", b""), "what answers there is no node of BurrowMQ: is it"),
        (http_answer("404 Not Found", b"no"), "what answers there is no node of BurrowMQ: is it"),
        (http_answer("302 Found", b""), "what answers there sends elsewhere (HTTP 302): is it"),
        (http_answer("200 OK", b"[", 9), "IncompleteRead(1 bytes read, 8 more expected)"),
    ],
)
def test_what_is_no_node_is_said_to_be_that(answer: bytes, told: str) -> None:
    with answering(answer) as url:
        output = ctl("--url", url, "list_queues")
    assert (output.code, told in output.err) == (69, True), output.err


def test_an_answer_that_goes_on_and_on_is_not_waited_for() -> None:
    with answering(http_answer("200 OK", b"[", 9999), *[b" "] * 9990, every_s=0.02) as url:
        output = ctl("--url", url, "--timeout", "0.5", "list_queues")
    assert (output.code, output.err) == (75, f"Error: no answer from {url} within 0.5 seconds\n")


def test_another_protocol_is_said_to_be_that() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            client, _ = server.accept()
            with client:
                client.recv(65536)  # closing with it unread would reset the connection
                client.sendall(b"AMQP\0\0\x09\x01")

        thread = threading.Thread(target=answer)
        thread.start()
        output = ctl("--url", f"http://127.0.0.1:{server.getsockname()[1]}", "list_users")
        thread.join()
    assert output.code == 69
    assert "does not speak HTTP: is it the management port?" in output.err


def test_a_certificate_that_is_not_trusted_is_told_with_the_way_to_trust_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaf = Authority(tmp_path).issue_server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(leaf.certificate, leaf.key)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as server:

        def refuse() -> None:
            client, _ = server.accept()
            with client, suppress(OSError):
                context.wrap_socket(client, server_side=True)

        thread = threading.Thread(target=refuse)
        thread.start()
        output = ctl("--url", f"https://127.0.0.1:{server.getsockname()[1]}", "list_users")
        thread.join()
    assert output.code == 69
    assert " * its certificate is not trusted: " in output.err
    assert "SSL_CERT_FILE=FILE names a file of authorities to trust" in output.err
    assert "Is the node running?" not in output.err


def test_https_where_there_is_no_tls_is_said_to_be_that(served: Served) -> None:
    output = ctl("--url", f"https://guest:guest@127.0.0.1:{served.port}", "list_users")
    assert output.code == 69
    assert " * what answers there does not speak TLS: write http://" in output.err


def test_a_socket_path_too_long_for_an_address(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    with serving(deep) as served:
        assert served.ctl("-q", "ping").out == "Ping succeeded\n"
