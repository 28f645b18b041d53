"""Policies, parameters and limits: rabbitmqctl's words and exit codes, as a live node's tool prints them."""

from __future__ import annotations

import json

import pytest

from tests.support.served import Served


def test_policy_life(served: Served) -> None:
    output = served.ctl(
        "set_policy",
        "ttl",
        "^orders",
        '{"message-ttl":60000}',
        "--priority",
        "1",
        "--apply-to",
        "queues",
    )
    assert (output.code, output.out) == (
        0,
        'Setting policy "ttl" for pattern "^orders" to "{"message-ttl":60000}"'
        ' with priority "1" for vhost "/" ...\n',
    )
    served.ctl("set_policy", "last", "x", '{"expires":1}', "--priority", "2")
    assert served.ctl("list_policies").out == (
        'Listing policies for vhost "/" ...\n'
        "vhost\tname\tpattern\tapply-to\tdefinition\tpriority\n"
        '/\tttl\t^orders\tqueues\t{"message-ttl":60000}\t1\n'
        '/\tlast\tx\tall\t{"expires":1}\t2\n'
    )
    assert (
        '"definition":"{\\"message-ttl\\":60000}"'
        in served.ctl("list_policies", "--formatter", "json").out
    )
    assert served.ctl("clear_policy", "ttl").out == 'Clearing policy "ttl" on vhost "/" ...\n'
    output = served.ctl("clear_policy", "ttl")
    assert (output.code, output.err) == (69, "Error:\nParameter does not exist\n")


def test_operator_policy_life(served: Served) -> None:
    assert served.ctl("set_operator_policy", "op1", ".*", '{"max-length":3}').out == (
        'Setting operator policy override "op1" for pattern ".*" to "{"max-length":3}"'
        ' with priority "0" for vhost "/" ...\n'
    )
    listed = served.ctl("list_operator_policies").out
    assert listed.startswith('Listing operator policy overrides for vhost "/" ...\n')
    assert listed.endswith('/\top1\t.*\tall\t{"max-length":3}\t0\n')
    assert served.ctl("list_parameters").out == (
        'Listing runtime parameters for vhost "/" ...\ncomponent\tname\tvalue\noperator_policy\top1\t'
        '{"pattern":".*","definition":{"max-length":3},"priority":0,"apply-to":"all"}\n'
    )
    assert served.ctl("clear_operator_policy", "op1").out == (
        'Clearing operator policy "op1" on vhost "/" ...\n'
    )
    assert served.ctl("clear_operator_policy", "op1").code == 69


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        ('{"max-length":"a"}', '<<"a">> is not a valid maximum length\n'),
        ("{}", "no policy provided\n"),
        ('{"foo":1}', '[{<<"foo">>,1}] are not recognised policy settings\n'),
    ],
)
def test_validation_failed(served: Served, definition: str, text: str) -> None:
    output = served.ctl("set_policy", "x", "y", definition)
    assert (output.code, output.err) == (69, f"Error:\nValidation failed\n\n{text}\n")


def test_other_refusals(served: Served) -> None:
    output = served.ctl("set_policy", "x", "y", '{"a')
    assert output.code == 69
    assert output.err.startswith("Error:\nJSON decoding error. Reason: ")
    output = served.ctl("set_policy", "x", "y", "{}", "--priority", "abc")
    assert output.code == 64
    assert "--priority : abc" in output.err
    assert served.ctl("set_policy", "x", "y").code == 64
    missing = "Virtual host 'nope' does not exist\n"
    output = served.ctl("set_policy", "-p", "nope", "x", "y", '{"max-length":1}')
    assert (output.code, output.err) == (65, missing)
    output = served.ctl("list_policies", "-p", "nope")
    assert (output.code, output.err) == (65, missing)
    output = served.ctl("clear_policy", "-p", "nope", "x")
    assert (output.code, output.err) == (69, "Error:\nParameter does not exist\n")


def test_parameters(served: Served) -> None:
    output = served.ctl("set_parameter", "foo", "bar", "1")
    assert output.out == (
        'Setting runtime parameter "bar" for component "foo" to "1" in vhost "/" ...\n'
    )
    assert (output.code, output.err) == (
        69,
        "Error:\nValidation failed\n\ncomponent foo not found\n\n",
    )
    output = served.ctl("clear_parameter", "foo", "bar")
    assert (output.code, output.err) == (69, "Error:\nParameter does not exist\n")
    assert served.ctl("set_global_parameter", "gp", '{"a":1}').out == (
        'Setting global runtime parameter "gp" to "{"a":1}" ...\n'
    )
    assert served.ctl("list_global_parameters").out.startswith(
        'Listing global runtime parameters ...\nname\tvalue\ngp\t{"a":1}\ninternal_cluster_id\t"rabbitmq-'
    )
    assert served.ctl("clear_global_parameter", "gp").code == 0
    assert served.ctl("clear_global_parameter", "gp").code == 69


def test_vhost_limits(served: Served) -> None:
    limits = '{"max-queues":3,"max-connections":2}'
    assert served.ctl("set_vhost_limits", limits).out == (
        f'Setting vhost limits to "{limits}" for vhost "/" ...\n'
    )
    assert served.ctl("list_vhost_limits").out == (
        'Listing limits for vhost "/" ...\n{"max-connections":2,"max-queues":3}\n'
    )
    assert "/\t" in served.ctl("list_vhost_limits", "--global").out
    output = served.ctl("set_vhost_limits", '{"foo":3}')
    assert (output.code, output.err) == (
        69,
        'Error:\nValidation failed\n\nUnrecognised terms [{<<"foo">>,3}] in limits\n\n',
    )
    assert served.ctl("clear_vhost_limits").out == 'Clearing vhost "/" limits ...\n'
    assert served.ctl("list_vhost_limits", "-q").out == "\n"
    assert served.ctl("list_vhost_limits", "-p", "nope").code == 65
    assert served.ctl("set_vhost_limits", "-p", "nope", "{}").code == 65


def test_user_limits(served: Served) -> None:
    assert served.ctl("set_user_limits", "guest", '{"max-connections":200}').out == (
        'Setting user limits to "{"max-connections":200}" for user "guest" ...\n'
    )
    served.ctl("set_user_limits", "guest", '{"max-channels":5}')
    assert served.ctl("list_user_limits", "--user", "guest").out == (
        'Listing limits for user "guest" ...\n{"max-channels":5,"max-connections":200}\n'
    )
    assert "guest\t" in served.ctl("list_user_limits", "--global").out
    output = served.ctl("set_user_limits", "guest", '{"foo":200}')
    assert (output.code, output.err) == (
        69,
        'Error:\nUnrecognised terms [{<<"foo">>,200}] in user-limits\n',
    )
    missing = 'Error:\n{:no_such_user, "nope"}\n'
    output = served.ctl("set_user_limits", "nope", '{"max-channels":5}')
    assert (output.code, output.err) == (69, missing)
    assert served.ctl("list_user_limits", "--user", "nope").err == missing
    assert served.ctl("clear_user_limits", "guest", "max-channels").out == (
        'Clearing "max-channels" limit for user "guest" ...\n'
    )
    assert served.ctl("clear_user_limits", "guest", "all").out == (
        'Clearing all limits for user "guest" ...\n'
    )
    assert served.ctl("list_user_limits").out.endswith("{}\n")


@pytest.mark.parametrize("text", ["NaN", "-Infinity", "1e999", "[" * 20_000])
def test_what_only_python_reads_is_no_json(served: Served, text: str) -> None:
    output = served.ctl("set_global_parameter", "gp", text)
    assert output.code == 69
    assert output.err.startswith("Error:\nJSON decoding error. Reason: ")


def test_lists_that_are_empty(served: Served) -> None:
    served.ctl("add_vhost", "v")
    for name in ("list_permissions", "list_policies", "list_parameters", "list_vhost_limits"):
        assert served.ctl("-q", "-p", "v", name).out == "\n"
        assert json.loads(served.ctl("-p", "v", name, "--formatter", "json").out) == []
    assert served.ctl("-q", "-p", "v", "list_policies", "--formatter", "erlang").out == "[]\n"
    for name in ("list_vhost_limits", "list_user_limits"):
        assert served.ctl("-q", name, "--global").out == "\n"
