"""/api/users and /api/permissions."""

from __future__ import annotations

from pathlib import Path

import pytest

from burrowmq.broker.rules.password_rules import LENGTH
from burrowmq.broker.rules.passwords import hash_password
from burrowmq.config.schema import LoginConfig
from tests.support.served import Served, serving


def test_user_life(served: Served) -> None:
    assert (
        served.api("PUT", "/api/users/bob", {"password": "x"}).body["reason"] == "tags_not_present"
    )
    assert (
        served.api(
            "PUT", "/api/users/bob", {"password": "x", "tags": "monitoring, policymaker"}
        ).status
        == 201
    )
    assert served.get("/api/users/bob")["tags"] == ["monitoring", "policymaker"]
    assert [row["name"] for row in served.get("/api/users/without-permissions")] == ["bob"]
    assert served.api("GET", "/api/whoami", login="bob:x").status == 200
    # Without a password nobody logs in as bob any more.
    assert served.api("PUT", "/api/users/bob", {"tags": []}).status == 204
    assert served.api("GET", "/api/whoami", login="bob:x").status == 401
    assert served.api("DELETE", "/api/users/bob").status == 204
    assert served.api("GET", "/api/users/bob").status == 404


def test_permissions(served: Served) -> None:
    served.api("PUT", "/api/users/bob", {"password": "x", "tags": []})
    path = "/api/permissions/%2F/bob"
    assert "key_missing,write" in served.api("PUT", path, {"configure": ""}).body["reason"]
    patterns = {"configure": "^a", "write": ".*", "read": ""}
    for other in ("/api/permissions/nope/bob", "/api/permissions/%2F/nobody"):
        refused = served.api("PUT", other, patterns)
        assert (refused.status, refused.body["reason"]) == (400, "vhost_or_user_not_found")
    assert served.api("PUT", path, patterns).status == 201
    assert served.api("PUT", path, patterns).status == 204
    assert served.get(path)["configure"] == "^a"
    assert served.api("PUT", path, {**patterns, "read": "["}).status == 400
    assert len(served.get("/api/permissions")) == 2
    assert served.get("/api/users/bob/permissions")[0]["vhost"] == "/"
    assert served.api("DELETE", path).status == 204
    assert served.api("GET", path).status == 404


def test_bulk_delete(served: Served) -> None:
    for name in ("a", "b"):
        served.api("PUT", f"/api/users/{name}", {"password": "x", "tags": []})
    refused = served.api("POST", "/api/users/bulk-delete", {"users": ["a", "nosuch", "b"]})
    assert (refused.status, refused.body["reason"]) == (400, ["no_such_user", "nosuch"])
    assert [row["name"] for row in served.get("/api/users")] == ["b", "guest"]
    assert served.api("POST", "/api/users/bulk-delete", {"users": ["b"]}).status == 204
    assert [row["name"] for row in served.get("/api/users")] == ["guest"]
    assert served.api("POST", "/api/users/bulk-delete", {}).status == 400


def test_a_password_or_its_hash_not_both(served: Served) -> None:
    body = {"password": "x", "password_hash": "eA==", "tags": ""}
    assert served.api("PUT", "/api/users/a", body).status == 400
    assert served.api("GET", "/api/users/a").status == 404


def test_hashes_of_every_algorithm_survive_a_change_of_tags(served: Served) -> None:
    import hashlib
    from base64 import b64encode

    for name in ("md5", "sha256", "sha512"):
        stored = b64encode(b"salt" + hashlib.new(name, b"saltpw").digest()).decode()
        body = {"password_hash": stored, "tags": ["management"]}
        assert served.api("PUT", f"/api/users/{name}", body).status == 201
        assert served.ctl("set_user_tags", name, "monitoring").code == 0
        assert served.get(f"/api/users/{name}")["hashing_algorithm"].endswith(name)
        answer = served.api("GET", "/api/whoami", login=f"{name}:pw")
        assert (answer.status, answer.body["name"]) == (200, name)


SHORT = "a hash of rabbit_password_hashing_sha256 has 36 octets, this one has 3"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"password_hash": "notb64"}, ["not_base64", "notb64"]),
        (
            {"password_hash": "AAA", "hashing_algorithm": "rabbit_password_hashing_sha512"},
            ["not_base64", "AAA"],
        ),
        ({"password_hash": "AAAA"}, SHORT),
        (
            {"hashing_algorithm": ["a"], "password_hash": ""},
            ["unknown_hashing_algorithm", "['a']"],
        ),
        (
            {"hashing_algorithm": "rot13", "password_hash": ""},
            ["unknown_hashing_algorithm", "rot13"],
        ),
    ],
)
def test_what_is_no_hash_is_refused(served: Served, given: dict[str, str], reason: object) -> None:
    answer = served.api("PUT", "/api/users/u", {"tags": "", **given})
    assert (answer.status, answer.body["reason"]) == (400, reason)
    assert served.api("GET", "/api/users/u").status == 404


def test_a_hash_that_is_there_may_be_given_back(served: Served) -> None:
    """A document brought it, as RabbitMQ lets it; new tags are no reason to lose the user."""
    served.node.auth.put_user("old", "AAAA", ("management",))
    given = {"password_hash": "AAAA", "tags": "monitoring"}
    assert served.api("PUT", "/api/users/old", given).status == 204
    assert served.get("/api/users/old")["tags"] == ["monitoring"]


def test_a_hash_may_end_in_a_new_line(served: Served) -> None:
    stored = hash_password("pw", b"salt")
    assert (
        served.api("PUT", "/api/users/u", {"password_hash": f"{stored}\n", "tags": ""}).status
        == 201
    )
    assert served.get("/api/users/u")["password_hash"] == stored


def test_only_names_are_deleted(served: Served) -> None:
    refused = served.api("POST", "/api/users/bulk-delete", {"users": [["guest"]]})
    assert (refused.status, refused.body["reason"]) == (400, ["no_such_user", ["guest"]])


def test_passwords_have_to_fit_the_rule(tmp_path: Path) -> None:
    """credential_validator.*: the API says that it does not fit, burrowctl says why; hashes are taken."""
    login = LoginConfig(password_rule=LENGTH, password_min_length=8)
    with serving(tmp_path / "data", login=login) as served:
        answer = served.api("PUT", "/api/users/a", {"password": "seven77", "tags": ""})
        assert (answer.status, answer.body["reason"]) == (400, "credential_validation_failed")
        assert served.api("PUT", "/api/users/a", {"tags": ""}).status == 400
        assert served.api("PUT", "/api/users/a", {"password_hash": "", "tags": ""}).status == 201
        assert served.api("PUT", "/api/users/b", {"password": "eight888", "tags": ""}).status == 201
        refused = served.ctl("change_password", "b", "short")
        assert (refused.code != 0, "minimum required password length is 8" in refused.err) == (
            True,
            True,
        )
        assert served.ctl("authenticate_user", "b", "eight888").code == 0
        document = {"users": [{"name": "c", "password": "short", "tags": ""}]}
        answer = served.api("POST", "/api/definitions", document)
        assert answer.status == 400
        assert "credential_validation_failed" in answer.body["reason"]
        assert "c" not in served.node.auth.users


@pytest.mark.parametrize("value", [None, 1, [], {}])
def test_what_is_no_text_is_refused_and_not_kept_as_python_writes_it(
    served: Served, value: object
) -> None:
    patterns = {"configure": "", "write": "", "read": ""}
    topic = {"exchange": "amq.topic", "write": "", "read": ""}
    for path, good in (
        ("permissions/%2F/guest", patterns),
        ("topic-permissions/%2F/guest", topic),
        ("cluster-name", {"name": "n"}),
    ):
        for key in good:
            answer = served.api("PUT", f"/api/{path}", good | {key: value})
            assert (answer.status, answer.body["reason"]) == (400, ["not_string", key])
    if value is not None:
        for key in ("password", "password_hash"):
            answer = served.api("PUT", "/api/users/u", {"tags": "", key: value})
            assert (answer.status, answer.body["reason"]) == (400, ["not_string", key])


def test_a_list_of_users_is_a_list(served: Served) -> None:
    assert served.api("POST", "/api/users/bulk-delete", {"users": "guest"}).status == 400


def test_the_key_of_rabbitmq_2_stands_for_tags(served: Served) -> None:
    for value, tags in ((True, ["administrator"]), ("true", ["administrator"]), (False, [])):
        body = {"password": "x", "administrator": value}
        assert served.api("PUT", "/api/users/u", body).status in {201, 204}
        assert served.get("/api/users/u")["tags"] == tags
    refused = served.api("PUT", "/api/users/u", {"password": "x", "administrator": 1})
    assert (refused.status, refused.body["reason"]) == (400, ["not_boolean", 1])
    both = {"password": "x", "administrator": True, "tags": "monitoring"}
    assert served.api("PUT", "/api/users/u", both).status == 204
    assert served.get("/api/users/u")["tags"] == ["monitoring"]


@pytest.mark.parametrize(
    ("path", "methods", "allowed"),
    [
        ("bulk-delete", ("GET", "PUT", "DELETE"), "POST, OPTIONS"),
        ("without-permissions", ("PUT", "POST", "DELETE"), "HEAD, GET, OPTIONS"),
    ],
)
def test_what_stands_beside_users_is_none(
    served: Served, path: str, methods: tuple[str, ...], allowed: str
) -> None:
    for method in methods:
        answer = served.api(method, f"/api/users/{path}", {"password": "x", "tags": ""})
        assert (method, answer.status) == (method, 405)
        if method != "POST":
            assert answer.headers["allow"] == allowed
    assert path not in [row["name"] for row in served.get("/api/users")]


def test_limits_are_set_with_the_user_and_others_stay(served: Served) -> None:
    def put(**limits: object) -> int:
        return served.api("PUT", "/api/users/u", {"password": "x", "tags": "", **limits}).status

    def limits() -> dict[str, int]:
        found: dict[str, int] = served.get("/api/users/u")["limits"]
        return found

    refused = served.api(
        "PUT", "/api/users/u", {"password": "x", "tags": "", "limits": {"max-channels": "a"}}
    )
    assert (refused.status, refused.body["reason"]) == (
        400,
        'max-channels should be a number, actually was <<"a">>',
    )
    assert served.api("GET", "/api/users/u").status == 404
    assert put(limits={"max-connections": 3}) == 201
    assert served.get("/api/user-limits/u") == [{"user": "u", "value": {"max-connections": 3}}]
    assert put() == 204
    assert put(limits={}) == 204
    assert limits() == {"max-connections": 3}
    assert put(limits={"max-channels": 5}) == 204
    assert limits() == {"max-connections": 3, "max-channels": 5}
    assert put(limits={"foo": 1}) == put(limits=7) == 400
    document = {
        "users": [{"name": "u", "password_hash": "", "tags": "", "limits": {"max-channels": 9}}]
    }
    assert served.api("POST", "/api/definitions", document).status == 204
    assert limits() == {"max-connections": 3, "max-channels": 9}
