"""shovel_status, restart_shovel, delete_shovel: banners and refusals of RabbitMQ's plugin."""

from __future__ import annotations

import json

from tests.support.served import Served

VALUE = json.dumps(
    {"src-uri": [], "src-queue": "a", "dest-uri": "amqp://", "dest-queue": "b"},
)


def test_none(served: Served) -> None:
    output = served.ctl("shovel_status")
    assert output.code == 0
    assert output.out.startswith("Shovel status on node ")
    assert served.ctl("-q", "shovel_status", "--formatter", "json").out.split() == ["[", "]"]


def test_one_is_shown_restarted_and_deleted(served: Served) -> None:
    assert served.ctl("set_parameter", "shovel", "s", VALUE).code == 0
    (row,) = json.loads(served.ctl("-q", "shovel_status", "--formatter", "json").out)
    assert (row["name"], row["vhost"], row["type"]) == ("s", "/", "dynamic")
    assert "source_exchange" not in row
    output = served.ctl("restart_shovel", "s")
    assert output.code == 0
    assert output.out.startswith("Restarting dynamic Shovel s in virtual host / on node ")
    output = served.ctl("delete_shovel", "s")
    assert (output.code, output.out.strip()) == (0, "Deleting shovel s in vhost /")
    assert served.ctl("-q", "list_parameters").out.strip() == ""


def test_one_that_is_not_there(served: Served) -> None:
    for command in ("restart_shovel", "delete_shovel"):
        output = served.ctl(command, "nx")
        assert output.code == 69
        assert "Shovel with the given name was not found on the target node" in output.err
        assert "and / or virtual host '/'" in output.err
