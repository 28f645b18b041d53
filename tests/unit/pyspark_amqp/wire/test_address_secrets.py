"""Secrets in files and in addresses that were mistyped: none is asked of a terminal, none is in a text."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyspark_amqp.wire import Address, BadAddress, Tls, parse_address
from tests.support.certificates import Authority, distinguished


@pytest.mark.parametrize(
    "uri",
    [
        "amqp://user:12?secret@h/v",
        "amqp://user:?secret@h",
        "amqp://user:12/secret@h",
        "amqp://user:12?heartbeat=secret@h",
        "amqp://user:12#secret@h",
    ],
)
def test_what_may_be_a_part_of_a_password_is_in_no_text(uri: str) -> None:
    with pytest.raises(BadAddress, match="%40") as caught:
        parse_address(uri)
    assert "secret" not in str(caught.value)


def test_an_at_sign_behind_a_user_is_one() -> None:
    assert parse_address("amqps://u:p@h/v@w?cacertfile=/etc/a@b.pem").vhost == "v@w"


@pytest.mark.parametrize(("password", "says"), [(None, "key_password_file"), ("wrong", "reading")])
def test_an_encrypted_key_without_its_password_is_an_error_and_no_question(
    tmp_path: Path, password: str | None, says: str
) -> None:
    name = distinguished(common_name="client")
    leaf = Authority(tmp_path).issue("client", name, password="secret")
    (tmp_path / "password").write_text(password or "secret")
    given = str(tmp_path / "password") if password else None
    files = {"certfile": str(leaf.certificate), "keyfile": str(leaf.key)}
    with pytest.raises(BadAddress, match=says):
        Tls(**files, key_password_file=given).context("here")
    (tmp_path / "password").write_text("secret\n")
    Tls(**files, key_password_file=str(tmp_path / "password")).context("here")


def test_a_password_file_that_is_no_text_is_named_and_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_bytes(b"secret\xff")
    with pytest.raises(BadAddress, match="password is no UTF-8") as caught:
        Address(password_file=str(path)).find_password()
    error: BaseException | None = caught.value
    while error is not None:
        assert "secret" not in repr(error)
        error = error.__cause__ or error.__context__
    with pytest.raises(BadAddress, match="password file"):
        Address(password_file="a\x00b").find_password()
