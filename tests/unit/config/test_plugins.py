"""burrowmq.config.plugins: the enabled_plugins file."""

from __future__ import annotations

import pytest

from burrowmq.cli.commands import plugins as commands
from burrowmq.config import plugins
from burrowmq.management.answers import status


def test_a_list_of_plugins() -> None:
    assert plugins.parse("[rabbitmq_management,rabbitmq_stomp ].\n") == [
        "rabbitmq_management",
        "rabbitmq_stomp",
    ]
    assert plugins.parse("% none\n[].") == []
    assert plugins.parse("") == []


@pytest.mark.parametrize("text", ["rabbitmq_management", "[a,].", "[a]", "{a}."])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no list of plugins, write \["):
        plugins.parse(text)


def test_built_in_ones_need_no_word() -> None:
    assert plugins.BUILT_IN.issuperset(status.PLUGINS)
    assert set(commands.BUILT_IN) == plugins.BUILT_IN  # what `rabbitmq-plugins` says of them
    assert plugins.remark("rabbitmq_management") is None
    assert "rabbitmq_stomp" in str(plugins.remark("rabbitmq_stomp"))
