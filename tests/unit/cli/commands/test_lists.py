"""list_* commands: columns, banners, formats."""

from __future__ import annotations

import pytest

from tests.support.served import Served


def test_the_lazy_queue_guides_columns(served: Served) -> None:
    columns = "name arguments memory messages_ram message_bytes_ram messages_persistent message_bytes_persistent"
    memory = served.node.vhosts["/"].queues["lazy"].memory_bytes
    output = served.ctl("list_queues", *columns.split())
    assert output.code == 0
    assert output.out.splitlines()[:4] == [
        "Timeout: 60.0 seconds ...",
        "Listing queues for vhost / ...",
        columns.replace(" ", "\t"),
        f'lazy\t[{{"x-queue-mode","lazy"}}]\t{memory}\t0\t0\t3\t3000',  # the guide has a million
    ]


def test_the_length_limit_guides_table(served: Served) -> None:
    output = served.ctl(
        "list_queues",
        "name",
        "durable",
        "arguments",
        "policy",
        "--formatter=pretty_table",
        "--silent",
    )
    assert output.out.splitlines() == [
        "┌────────┬─────────┬─────────────────────────────────────────┬────────┐",
        "│ name   │ durable │ arguments                               │ policy │",
        "├────────┼─────────┼─────────────────────────────────────────┼────────┤",
        '│ lazy   │ true    │ {<<"x-queue-mode">>,longstr,<<"lazy">>} │        │',
        "├────────┼─────────┼─────────────────────────────────────────┼────────┤",
        "│ orders │ false   │                                         │        │",
        "└────────┴─────────┴─────────────────────────────────────────┴────────┘",
    ]


def test_every_column_of_every_list(served: Served) -> None:
    from burrowmq.cli.commands import lists

    for kind in (lists.QUEUES, lists.EXCHANGES, lists.BINDINGS, lists.CONNECTIONS, lists.CHANNELS, lists.CONSUMERS,
                 lists.VHOSTS):  # fmt: skip
        for formatter in ("table", "json", "csv", "erlang", "json_stream", "pretty_table"):
            output = served.ctl(
                f"list_{kind.path}", *kind.columns.split(), "--formatter", formatter
            )
            assert (output.code, output.err) == (0, ""), (kind.path, formatter)


@pytest.mark.parametrize(
    ("argv", "lines"),
    [
        (["list_exchanges"], ["Listing exchanges for vhost / ...", "name\ttype", "\tdirect", "amq.direct\tdirect"]),
        (["list_bindings", "source_name", "routing_key"],
         ["Listing bindings for vhost /...", "source_name\trouting_key", "\tlazy", "\torders", "amq.topic\ta b/c"]),
        (["list_connections"], ["Listing connections ...", "user\tpeer_host\tpeer_port\tstate",
                                "guest\t127.0.0.1\t40000\trunning"]),
        (["list_channels", "user", "number"], ["Listing channels ...", "user\tnumber", "guest\t1"]),
        (["list_consumers", "queue_name", "active"], ["Listing consumers in vhost / ...", "queue_name\tactive",
                                                      "orders\ttrue"]),
        (["list_vhosts"], ["Listing vhosts ...", "name", "/"]),
        (["list_users"], ["Listing users ...", "user\ttags", "guest\t[administrator]"]),
        (["list_permissions"], ['Listing permissions for vhost "/" ...', "user\tconfigure\twrite\tread",
                                "guest\t.*\t.*\t.*"]),
        (["list_user_permissions", "guest"], ['Listing permissions for user "guest" ...',
                                              "vhost\tconfigure\twrite\tread", "/\t.*\t.*\t.*"]),
    ],
)  # fmt: skip
def test_banners_and_defaults(served: Served, argv: list[str], lines: list[str]) -> None:
    output = served.ctl(*argv)
    assert (output.code, output.out.splitlines()[: len(lines)]) == (0, lines)


def test_quiet_and_silent(served: Served) -> None:
    assert served.ctl("-q", "list_queues").out == "name\tmessages\nlazy\t3\norders\t4\n"
    assert served.ctl("list_queues", "-s").out == "lazy\t3\norders\t4\n"
    assert served.ctl("-q", "list_queues", "--no-table-headers", "name").out == "lazy\norders\n"


def test_json_has_no_banner(served: Served) -> None:
    output = served.ctl("list_queues", "--formatter", "json", "name", "arguments", "policy")
    assert output.out == (
        '[\n{"name":"lazy","arguments":{"x-queue-mode":"lazy"},"policy":""}\n'
        ',{"name":"orders","arguments":{},"policy":""}\n]\n'
    )


def test_a_vhost_that_does_not_exist(served: Served) -> None:
    output = served.ctl("list_queues", "-p", "nope")
    assert output.code == 0
    assert output.out.splitlines()[1:] == ["Listing queues for vhost nope ..."]
    output = served.ctl("list_permissions", "-p", "nope")
    assert (output.code, output.err) == (65, "Virtual host 'nope' does not exist\n")
    assert served.ctl("list_user_permissions", "nosuch").code == 69


def test_unknown_columns(served: Served) -> None:
    output = served.ctl("list_queues", "name,foo", "bar")
    assert output.code == 64
    assert "Info key(s) foo,bar are not supported" in output.err


def test_a_running_node_has_no_offline_queues(served: Served) -> None:
    assert served.ctl("-q", "list_queues", "--offline").out == ""
    assert "lazy" in served.ctl("-q", "list_queues", "--online").out


def test_the_state_of_a_vhost_reads_as_in_rabbitmq(served: Served) -> None:
    output = served.ctl("-s", "list_vhosts", "cluster_state")
    assert output.out == "[{rabbit@test, running}]\n"


def test_consumers_keep_rabbitmqctls_order_of_columns(served: Served) -> None:
    output = served.ctl("-q", "list_consumers", "active,arguments", "queue_name")
    assert output.out == "queue_name\tactive\targuments\norders\ttrue\t[]\n"


def test_silent_csv_keeps_its_head(served: Served) -> None:
    assert served.ctl("-s", "list_queues", "--formatter", "csv").out == (
        '"name","messages"\n"lazy","3"\n"orders","4"\n'
    )
    output = served.ctl("list_queues", "--formatter", "csv", "--no-table-headers")
    assert output.out.startswith('"lazy"')


def test_erlangs_arguments_are_octets(served: Served) -> None:
    output = served.ctl("-q", "list_queues", "--formatter", "erlang", "name", "arguments")
    assert output.out == (
        '[[{name,<<"lazy">>},{arguments,[{<<"x-queue-mode">>,longstr,<<"lazy">>}]}],\n'
        ' [{name,<<"orders">>},{arguments,[]}]]\n'
    )
