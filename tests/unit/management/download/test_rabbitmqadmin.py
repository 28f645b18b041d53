"""The script against the HTTP API: subcommands, formats, settings, and what it says when it is refused."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from burrowmq.broker.product import RABBITMQ_VERSION
from burrowmq.management.download.rabbitmqadmin import main
from tests.support.served import Served

Admin = Callable[..., tuple[int, str, str]]


@pytest.fixture
def admin(served: Served, capsys: pytest.CaptureFixture[str]) -> Admin:
    def run(*words: str) -> tuple[int, str, str]:
        code = main(["-P", str(served.port), "-H", "127.0.0.1", *words])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.mark.slow
def test_things_are_declared_and_deleted(admin: Admin) -> None:
    for words in (
        ("vhost", "name=v"),
        ("user", "name=u", "password=u", "tags="),
        ("permission", "vhost=v", "user=u", "configure=.*", "write=.*", "read=.*"),
        ("exchange", "name=x", "type=topic"),
        ("queue", "name=q", "queue_type=classic", 'arguments={"x-max-length":5}'),
        ("binding", "source=x", "destination=q", "routing_key=k"),
        ("policy", "name=p", "pattern=^q", 'definition={"max-length":9}', "apply-to=queues"),
        ("operator_policy", "name=o", "pattern=^q", 'definition={"max-length":9}'),
        ("parameter", "component=vhost-limits", "name=limits", 'value={"max-queues":50}'),
        ("vhost_limit", "vhost=v", "name=max-queues", "value=7"),
    ):
        assert admin("declare", *words) == (0, f"{words[0]} declared\n", "")
    for words in (
        ("binding", "source=x", "destination=q", "destination_type=queue", "properties_key=k"),
        ("vhost_limit", "vhost=v", "name=max-queues"),
        ("parameter", "component=vhost-limits", "name=limits"),
        ("operator_policy", "name=o"),
        ("policy", "name=p"),
        ("queue", "name=q"),
        ("exchange", "name=x"),
        ("permission", "vhost=v", "user=u"),
        ("user", "name=u"),
        ("vhost", "name=v"),
    ):
        assert admin("delete", *words) == (0, f"{words[0]} deleted\n", "")


@pytest.mark.slow
def test_formats(admin: Admin) -> None:
    assert admin("list", "queues", "name", "messages") == (
        0,
        "+--------+----------+\n|  name  | messages |\n"
        + "+--------+----------+\n| lazy   | 3        |\n| orders | 4        |\n+--------+----------+\n",
        "",
    )
    assert admin("-f", "tsv", "list", "queues", "name")[1] == "name\nlazy\norders\n"
    assert (
        admin("-q", "-f", "tsv", "-S", "name", "-R", "list", "queues", "name")[1]
        == "orders\nlazy\n"
    )
    assert admin("-f", "bash", "list", "queues")[1] == "lazy orders\n"
    assert admin("-f", "kvp", "list", "queues", "name")[1] == 'name="lazy"\nname="orders"\n'
    raw = admin("-f", "raw_json", "list", "queues", "name")[1]
    assert raw == '[{"name":"lazy"},{"name":"orders"}]\n', "scripts look for it with grep"
    assert "\nname: lazy\n" in admin("-f", "long", "list", "queues", "name", "type")[1]
    assert json.loads(admin("-f", "pretty_json", "list", "queues", "name")[1])[0] == {
        "name": "lazy"
    }
    assert "rabbitmq_version" in admin("show", "overview")[1]
    assert admin("-f", "xml", "list", "queues") == (1, "", "*** Format xml not recognised\n")


def head(admin: Admin, *words: str) -> list[str]:
    """The columns that a list has."""
    return admin("-f", "tsv", *words)[1].split("\n")[0].split("\t")


@pytest.mark.slow
def test_without_columns_each_list_has_a_few(admin: Admin) -> None:
    assert head(admin, "list", "queues") == ["name", "messages"]
    assert head(admin, "list", "exchanges") == ["name", "type"]
    assert head(admin, "list", "bindings") == ["source", "destination", "routing_key"]
    assert head(admin, "list", "vhosts") == ["name", "messages"]
    assert head(admin, "list", "nodes") == ["name", "type", "mem_used"]
    assert head(admin, "show", "overview") == [
        "rabbitmq_version", "cluster_name", "queue_totals.messages", "object_totals.queues",
    ]  # fmt: skip
    assert head(admin, "list", "users")[0] == "name"


@pytest.mark.slow
def test_a_depth_that_is_said_asks_for_all_columns_so_deep(admin: Admin) -> None:
    level, two = (head(admin, "-d", depth, "list", "queues") for depth in ("1", "2"))
    assert level[:3] == ["vhost", "name", "type"]
    assert "messages_ready" in level
    assert not [name for name in level if "." in name]
    assert "messages_details.rate" in two
    deep = admin("-f", "tsv", "-q", "list", "queues", "name", "messages_details.rate")[1]
    assert deep.split("\n")[0] == "lazy\t0.0", "a column that is named may lie however deep"


@pytest.mark.slow
def test_lists_and_documents_in_a_cell(admin: Admin) -> None:
    admin("declare", "user", "name=u", "password=u", "tags=monitoring,policymaker")
    rows = admin("-f", "tsv", "-q", "list", "users", "name", "tags")[1].splitlines()
    assert sorted(rows) == ["guest\tadministrator", "u\tmonitoring policymaker"]
    admin("declare", "policy", "name=p", "pattern=^no", 'definition={"max-length":9}')
    (row,) = admin("-f", "tsv", "-q", "list", "policies", "name", "definition")[1].splitlines()
    assert row == 'p\t{"max-length": 9}'
    assert '{"max-length": 9}' in admin("list", "policies")[1]


@pytest.mark.parametrize("format_name", ["table", "tsv", "long", "kvp", "bash"])
def test_nothing_to_list(admin: Admin, format_name: str) -> None:
    assert admin("-f", format_name, "list", "parameters") == (0, "No items\n", "")
    assert admin("-q", "-f", format_name, "list", "parameters") == (0, "", "")


def test_bash_wants_a_name(admin: Admin) -> None:
    assert admin("-f", "bash", "list", "queues", "messages") == (0, "", "")


@pytest.mark.slow
def test_bash_completes_kinds(admin: Admin) -> None:
    script = admin("--bash-completion")[1]
    asked = "COMP_WORDS=(rabbitmqadmin {} {}); COMP_CWORD=2; _rabbitmqadmin; echo ${{COMPREPLY[*]}}"
    for verb, begun, expected in (
        ("list", "po", "policies"),
        ("declare", "op", "operator_policy"),
        ("show", "", "overview"),
        ("-f", "raw", "raw_json"),
    ):
        found = subprocess.run(
            ["bash", "-c", f"{script}\n{asked.format(verb, begun or chr(39) * 2)}"],
            capture_output=True, check=True, text=True,
        )  # fmt: skip
        assert (found.stdout, found.stderr) == (f"{expected}\n", "")


def test_messages(admin: Admin, tmp_path: Path) -> None:
    said = admin("publish", "routing_key=lazy", "payload=hello")
    assert said == (0, "Message published\n", "")
    said = admin("publish", "exchange=amq.direct", "routing_key=lazy", "payload=")
    assert said == (0, "Message published but NOT routed\n", "")
    assert "hello" in admin("get", "queue=lazy", "count=5")[1]
    file = tmp_path / "payload"
    assert (
        admin("get", "queue=lazy", f"payload_file={file}")[1] == f"Written 1000 bytes to {file}\n"
    )
    assert file.stat().st_size == 1000
    assert admin("purge", "queue", "name=lazy")[1] == "queue purged\n"


def test_definitions_go_to_a_file_and_back(admin: Admin, tmp_path: Path) -> None:
    file = str(tmp_path / "definitions")
    assert admin("export", file)[0] == 0
    assert [each["name"] for each in json.loads(Path(file).read_text())["users"]] == ["guest"]
    code, out, _ = admin("-V", "/", "import", file)
    assert (code, out.partition(" to ")[0]) == (0, f'Uploaded definitions from "{file}"')
    assert admin("import", str(tmp_path / "none"))[2].startswith("*** ")


@pytest.mark.slow
def test_refusals(admin: Admin, served: Served) -> None:
    assert admin("delete", "queue", "name=no") == (1, "", "*** Not found: /api/queues/%2F/no\n")
    said = admin("-p", "wrong", "list", "users")
    assert said == (1, "", "*** Access refused: /api/users\n")
    assert "inequivalent arg" in admin("declare", "queue", "name=lazy", "durable=false")[2]
    assert admin("declare", "queue") == (1, "", '*** mandatory argument "name" is required\n')
    said = admin("declare", "queue", "name=q", "colour=red")[2]
    assert said == '*** Argument "colour" is not recognised\n'
    said = admin("declare", "queue", "q")[2]
    assert said == '*** Argument "q" not in the name=value format\n'
    assert "Could not parse JSON" in admin("declare", "queue", "name=q", "arguments={")[2]
    assert "no such subcommand" in admin("list", "colours")[2]
    assert "Could not connect" in admin("-P", "1", "list", "users")[2]
    assert admin("export")[2] == "*** export: one file is needed\n"


def test_help_and_settings(admin: Admin, served: Served, tmp_path: Path) -> None:
    assert admin()[0] == 1
    assert admin("--version") == (0, f"rabbitmqadmin {RABBITMQ_VERSION}\n", "")
    assert admin("--help")[0] == admin("help", "subcommands")[0] == 0
    settings = tmp_path / "settings"
    settings.write_text("[default]\npassword = wrong\n[good]\nusername = guest\nquiet = true\n")
    assert "Access refused" in admin("-c", str(settings), "list", "users")[2]
    assert admin("-c", str(settings), "-N", "good", "declare", "vhost", "name=v") == (0, "", "")
    assert "section 'bad' not found" in admin("-c", str(settings), "-N", "bad", "list", "users")[2]
    address = f"http://127.0.0.1:{served.port}"
    assert (
        admin("-P", "1", "-U", address, "-t", "60", "-q", "-f", "tsv", "list", "users", "name")[1]
        == "guest\n"
    )


@contextlib.contextmanager
def answering(octets: bytes) -> Iterator[int]:
    """The port of something that says this to whoever asks once."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                client, _ = server.accept()
                with client:
                    client.recv(65536)
                    client.sendall(octets)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            thread.join()


OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        (b"AMQP\x00\x00\x09\x01", "does not speak HTTP: the management API has another port"),
        (OK + b"Content-Length: 9\r\n\r\n[]", "does not speak HTTP as it should: IncompleteRead"),
        (b"HTTP/1.1 400 No\r\nContent-Length: 9\r\n\r\n[]", "as it should: IncompleteRead"),
        (OK + b"\r\n<html></html>", "users is no JSON: that is no management API"),
        (OK + b"\r\n\xff\xfe", "users is no JSON: that is no management API"),
    ],
)
def test_what_is_no_management_api(
    octets: bytes, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with answering(octets) as port:
        code = main(["-H", "127.0.0.1", "-P", str(port), "list", "users"])
    said = capsys.readouterr()
    assert (code, said.out) == (1, "")
    assert said.err.startswith("*** ")
    assert text in said.err
    assert str(port) in said.err


def test_an_address_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["-U", "http://h:x"], ["-H", "a b"], ["-H", "h\n"]):
        assert main([*words, "list", "users"]) == 1
        assert capsys.readouterr().err.startswith("*** ")


def test_files_that_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    file = tmp_path / "settings"

    def said(*words: str) -> str:
        assert main(list(words)) == 1
        return capsys.readouterr().err

    assert said("-c", str(file), "list", "users") == f"*** {file}: No such file or directory\n"
    for octets in (b"username = u\n", b"[default]\nx\n", b"\xff\xfe"):
        file.write_bytes(octets)
        err = said("-c", str(file), "list", "users")
        assert err.startswith(f"*** {file} is no file of settings: ")
        assert err.count("\n") == 1
    assert said("import", str(file)).startswith(f"*** {file} is no JSON: ")
    assert main(["help", "config"]) == 0, "the usual file need not be there"
