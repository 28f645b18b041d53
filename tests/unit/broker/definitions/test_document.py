"""burrowmq.broker.definitions.document: a document makes a node, and again changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from burrowmq.broker.definitions.document import ImportRefused, import_document, import_file
from tests.support.bench.broker import BrokerBench

DOCUMENT: dict[str, Any] = {
    "rabbit_version": "3.8.1",
    "users": [
        {"name": "bob", "password_hash": "YWJj", "tags": "monitoring,management"},
        {"name": "old", "password_hash": "YWJj", "administrator": True},
        {
            "name": "eve",
            "password": "secret",
            "tags": ["administrator"],
            "limits": {"max-channels": 1},
        },
    ],
    "vhosts": [
        {"name": "/"},
        {"name": "v", "metadata": {"description": "d", "tags": ["a"]}, "limits": []},
    ],
    "permissions": [{"user": "bob", "vhost": "v", "configure": "^a", "write": ".*", "read": ""}],
    "topic_permissions": [
        {"user": "bob", "vhost": "v", "exchange": "amq.topic", "write": "a", "read": "b"}
    ],
    "parameters": [
        {"vhost": "v", "component": "vhost-limits", "name": "limits", "value": {"max-queues": 9}},
        {
            "vhost": "v",
            "component": "operator_policy",
            "name": "o",
            "value": {
                "pattern": "x",
                "definition": {"expires": 5},
                "priority": 0,
                "apply-to": "all",
            },
        },
    ],
    "global_parameters": [{"name": "gp", "value": {"a": 1}}],
    "policies": [
        {
            "vhost": "v",
            "name": "p",
            "pattern": "^q",
            "apply-to": "all",
            "definition": {"max-length": 1, "ha-mode": "all"},
            "priority": 0,
        }
    ],
    "queues": [{"name": "q", "vhost": "v", "durable": True, "arguments": {"x-max-length": 3}}],
    "exchanges": [{"name": "x", "vhost": "v", "type": "headers", "durable": True}],
    "bindings": [
        {
            "source": "x",
            "vhost": "v",
            "destination": "q",
            "destination_type": "queue",
            "routing_key": "k",
            "arguments": {"x-match": "all", "n": 1},
        },
        {
            "source": "nosuch",
            "vhost": "v",
            "destination": "q",
            "destination_type": "queue",
            "routing_key": "",
            "arguments": {},
        },
    ],
}


def empty() -> BrokerBench:
    """A node without virtual hosts and users."""
    return BrokerBench(rows=())


def test_everything_is_made() -> None:
    node = empty()
    import_document(node, DOCUMENT)
    assert node.auth.users["bob"].tags == ("monitoring", "management")
    assert node.auth.users["eve"].tags == ("administrator",)
    assert node.auth.users["old"].tags == ("administrator",)
    assert node.auth.users["eve"].limits == {"max-channels": 1}
    node.auth.authenticate("eve", "secret", is_loopback=True)
    assert node.auth.permissions[("v", "bob")].configure == "^a"
    assert node.auth.topic_permissions[("v", "bob")]["amq.topic"].read == "b"
    vhost = node.vhosts["v"]
    assert (vhost.description, vhost.tags, vhost.limits) == ("d", ["a"], {"max-queues": 9})
    assert node.parameters.values == {"gp": {"a": 1}}
    assert vhost.queues["q"].settings.max_length == 1
    assert vhost.policies.operator_policies["o"].definition == {"expires": 5}
    assert len(list(vhost.exchanges["x"].bindings)) == 1
    assert node.vhosts_made == ["/", "v"]


def test_names_that_a_server_gives_are_passed_over() -> None:
    node = BrokerBench()
    node.vhost.observer = cast("Any", node.observer)
    known = dict(node.vhost.exchanges)
    document = {
        "queues": [
            {"vhost": "/", "name": "amq.gen-1", "arguments": {"x-max-length": "bad"}},
            {"vhost": "/", "name": "amq_", "arguments": {}},
        ],
        "exchanges": [
            {"vhost": "/", "name": "amq.x", "type": "direct"},
            {"vhost": "/", "name": "amq.topic", "type": "direct"},
        ],
        "bindings": [{"vhost": "/", "source": "amq.topic", "destination": "amq.gen-1"}],
    }
    import_document(node, document)
    assert list(node.vhost.queues) == ["amq_"]
    assert node.vhost.exchanges == known
    assert node.observer.named("definition_skipped") == [
        ("/", "queue", "amq.gen-1"),
        ("/", "exchange", "amq.x"),
    ]
    with pytest.raises(ImportRefused):
        import_document(node, {"queues": [{"vhost": "nope", "name": "amq.gen-1"}]})


def test_a_description_of_null_is_none() -> None:
    node = BrokerBench()
    import_document(node, {"vhosts": [{"name": "w", "description": None}]})
    assert node.vhosts["w"].description == ""


def test_again_it_changes_and_writes_nothing() -> None:
    node = empty()
    import_document(node, DOCUMENT)
    node.engine.definitions.changes.clear()
    import_document(node, DOCUMENT)
    assert node.engine.definitions.changes == []
    assert len(list(node.vhosts["v"].exchanges["x"].bindings)) == 1


def test_the_default_queue_type_of_a_vhost() -> None:
    node = empty()
    entries = [
        {"name": "a", "metadata": {"default_queue_type": "classic"}},
        {"name": "b", "metadata": {"default_queue_type": "undefined"}},
    ]
    import_document(node, {"vhosts": entries})
    assert [node.vhosts[name].default_queue_type for name in "ab"] == ["classic", ""]
    with pytest.raises(ImportRefused) as caught:
        import_document(node, {"vhosts": [{"name": "c", "default_queue_type": "quorum"}]})
    assert caught.value.reason == "Unsupported default queue type 'quorum' (c)"
    assert "c" not in node.vhosts


def test_into_one_vhost() -> None:
    node = empty()
    import_document(node, {"vhosts": [{"name": "other"}]})
    parts = {
        "users": [{"name": "never"}],
        "queues": [{"name": "q"}],
        "exchanges": [{"name": "x", "type": "direct"}],
        "bindings": [{"source": "x", "destination": "q", "routing_key": "k"}],
        "policies": [{"name": "p", "pattern": "q", "definition": {"max-length": 1}}],
    }
    import_document(node, parts, "other")
    vhost = node.vhosts["other"]
    assert vhost.queues["q"].settings.max_length == 1
    assert len(list(vhost.exchanges["x"].bindings)) == 1
    assert node.auth.users == {}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"queues": [{"name": "z", "vhost": "nope"}]}, ["no_such_vhost", "nope"]),
        (
            {
                "permissions": [
                    {"user": "nope", "vhost": "/", "configure": "", "write": "", "read": ""}
                ]
            },
            ["no_such_user", "nope"],
        ),
        (
            {"policies": [{"name": "z", "vhost": "/", "pattern": "x", "definition": {"foo": 1}}]},
            'Validation failed\n\n[{<<"foo">>,1}] are not recognised policy settings\n (//z)',
        ),
        (
            {"parameters": [{"name": "z", "vhost": "/", "component": "foo", "value": 1}]},
            "Validation failed\n\ncomponent foo not found\n (//foo/z)",
        ),
        (
            {"queues": [{"name": "z", "vhost": "/", "arguments": {"x-max-length": -1}}]},
            "PRECONDITION_FAILED - invalid arg 'x-max-length' for queue 'z' in vhost '/': {value_negative,-1}",
        ),
        (
            {"queues": [{"name": "z", "vhost": "/", "type": "quorum"}]},
            "PRECONDITION_FAILED - invalid arg 'x-queue-type' for queue 'z' in vhost '/':"
            " \"unsupported queue type 'quorum'\"",
        ),
        (
            {"queues": [{"name": "z", "vhost": "/", "type": True}]},
            "PRECONDITION_FAILED - invalid arg 'x-queue-type' for queue 'z' in vhost '/':"
            " \"unsupported queue type 'true'\"",
        ),
        ({"exchanges": [{"name": "z", "vhost": "/", "type": "x"}]}, "unknown exchange type 'x'"),
        ({"queues": 5}, "queues must be a list"),
        (
            {
                "users": [{"name": "u", "password_hash": "", "tags": ""}],
                "permissions": [
                    {"vhost": "/", "user": "u", "configure": "", "write": "", "read": "a++"}
                ],
            },
            ["invalid_regexp", "possessive repeats are not supported (//u)"],
        ),
        ({"queues": [5]}, "queues must be a list of objects"),
        ({"users": [{"name": "u", "password_hash": ""}]}, "tags_not_present (u)"),
        (
            {"users": [{"name": "u", "password_hash": "", "administrator": "yes"}]},
            "not_boolean: yes (u)",
        ),
        (
            {"users": [{"name": "u", "password_hash": "%%", "tags": ""}]},
            ["not_base64", "%%"],
        ),
        ({"exchanges": [{"name": "z", "vhost": "/"}]}, ["key_missing", "type"]),
        (
            {"queues": [{"name": "z", "vhost": "/", "durable": "x"}]},
            "durable must be true or false (//z)",
        ),
        (
            {"exchanges": [{"name": "z", "vhost": "/", "type": "topic", "internal": 1}]},
            "internal must be true or false (//z)",
        ),
        (
            {"queues": [{"name": "z", "vhost": "/", "arguments": None}]},
            "arguments must be an object (//z)",
        ),
        (
            {"bindings": [{"vhost": "/", "source": "amq.topic", "destination_type": "x"}]},
            "destination_type must be queue or exchange, not 'x'",
        ),
        ({"queues": [{"vhost": "/"}]}, ["key_missing", "name"]),
    ],
)
def test_refusals(document: dict[str, Any], reason: object) -> None:
    node = empty()
    import_document(node, {"vhosts": [{"name": "/"}]})
    with pytest.raises(ImportRefused) as caught:
        import_document(node, document)
    assert caught.value.reason == reason


def test_a_queue_whose_type_is_null_is_a_classic_one() -> None:
    node = empty()
    queues = [{"name": "q", "vhost": "v", "type": None}]
    import_document(node, {"vhosts": [{"name": "v"}], "queues": queues})
    assert "q" in node.vhosts["v"].queues


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    path = tmp_path / "definitions.json"
    for text in ("{", "[]", json.dumps({"queues": [{"name": "z", "vhost": "nope"}]})):
        path.write_text(text)
        with pytest.raises(ImportRefused, match=r"definitions\.json cannot be imported"):
            import_file(empty(), str(path))
    path.write_text(json.dumps(DOCUMENT))
    node = empty()
    import_file(node, str(path))
    assert "q" in node.vhosts["v"].queues


def test_a_directory_is_imported_in_name_order(tmp_path: Path) -> None:
    node = empty()
    (tmp_path / "2.json").write_text(json.dumps({"queues": [{"vhost": "w", "name": "q"}]}))
    (tmp_path / "1.json").write_text(json.dumps({"vhosts": [{"name": "w"}]}))
    (tmp_path / "..data").mkdir()  # Kubernetes makes one
    (tmp_path / ".1.json.swp").write_text("{")
    import_file(node, str(tmp_path))
    assert "q" in node.vhosts["w"].queues
    (tmp_path / "3.json").write_text("{")
    with pytest.raises(ImportRefused, match=r"definitions in .*3\.json cannot be imported"):
        import_file(empty(), str(tmp_path))


def test_a_link_to_nowhere_in_a_directory_is_not_passed_over(tmp_path: Path) -> None:
    (tmp_path / "users.json").symlink_to(tmp_path / "gone")
    with pytest.raises(ImportRefused, match=r"users\.json cannot be imported: No such file"):
        import_file(empty(), str(tmp_path))


def test_what_the_system_refuses_is_told_without_its_number(tmp_path: Path) -> None:
    with pytest.raises(ImportRefused, match=r"cannot be imported: No such file or directory$"):
        import_file(empty(), str(tmp_path / "none.json"))


@pytest.mark.parametrize(
    ("section", "entry"),
    [
        ("vhosts", {"name": "?"}),
        ("queues", {"vhost": "v", "name": "?"}),
        ("exchanges", {"vhost": "v", "name": "?", "type": "direct"}),
        ("bindings", {"vhost": "v", "source": "x", "destination": "q", "routing_key": "?"}),
    ],
)
def test_what_no_client_could_name_is_refused(section: str, entry: dict[str, str]) -> None:
    def imported(name: str) -> None:
        made = {key: value.replace("?", name) for key, value in entry.items()}
        import_document(BrokerBench(), {**DOCUMENT, section: [*DOCUMENT[section], made]})

    for fits in ("n" * 255, "\u20ac" * 85):
        imported(fits)
    for name, size in (("n" * 256, 256), ("\u20ac" * 86, 258)):
        with pytest.raises(ImportRefused, match=f"less than 255 bytes, actually was {size}"):
            imported(name)
    with pytest.raises(ImportRefused, match="is no UTF-8"):
        imported("\ud800")


@pytest.mark.parametrize(
    ("section", "entry"),
    [
        ("users", {"name": "u", "tags": "", "password": "\ud800"}),
        ("users", {"name": "guest", "tags": "", "password": "\ud800"}),
        ("users", {"name": "u", "tags": ["\ud800"], "password_hash": ""}),
        ("vhosts", {"name": "u", "description": "\ud800"}),
        (
            "permissions",
            {"user": "guest", "vhost": "/", "configure": "", "write": "\ud800", "read": ""},
        ),
        ("global_parameters", {"name": "u", "value": {"\ud800": 1}}),
        ("queues", {"name": "u", "vhost": "/", "type": "\ud800"}),
    ],
)
def test_a_text_that_no_octets_stand_for_is_refused(section: str, entry: dict[str, Any]) -> None:
    node = BrokerBench()
    node.engine.definitions.changes.clear()
    with pytest.raises(ImportRefused, match="a text is no UTF-8"):
        import_document(node, {section: [entry]})
    assert node.engine.definitions.changes == []


@pytest.mark.parametrize("number", ["NaN", "1e999", "-Infinity"])
def test_a_file_with_what_is_no_number_is_refused(tmp_path: Path, number: str) -> None:
    path = tmp_path / "definitions.json"
    path.write_text('{"global_parameters": [{"name": "p", "value": [%s]}]}' % number)
    with pytest.raises(ImportRefused, match=number):
        import_file(BrokerBench(), str(path))


def test_a_description_that_is_null_is_none() -> None:
    node = empty()
    import_document(node, {"vhosts": [{"name": "w", "description": None}]})
    assert node.vhosts["w"].description == ""
    import_document(node, {"vhosts": [{"name": "w", "description": "d"}]})
    import_document(node, {"vhosts": [{"name": "w"}]})
    assert node.vhosts["w"].description == "d", "not mentioned, it stays"
