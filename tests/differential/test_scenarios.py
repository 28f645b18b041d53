"""Every scenario on RabbitMQ and on us at the same time; what differs must be in the table of accepted differences."""

from __future__ import annotations

import pytest

from tests.differential.catalogue import all_scenarios
from tests.differential.compare import Accepted
from tests.differential.runner import Runner

SCENARIOS = all_scenarios()

pytestmark = [pytest.mark.differential, pytest.mark.needs_server, pytest.mark.long]


@pytest.mark.parametrize("name", SCENARIOS)
def test_same(runner: Runner, request: pytest.FixtureRequest, name: str) -> None:
    asked = {
        item.callspec.params.get("name")
        for item in request.session.items
        if hasattr(item, "callspec")
    }
    verdict = runner.judge(name, [each for each in SCENARIOS if each in asked])
    if verdict.word == "different":
        pytest.fail(str(verdict), pytrace=False)


def test_the_table_names_scenarios_that_exist(accepted: list[Accepted]) -> None:
    named = frozenset().union(*(row.scenarios for row in accepted))
    assert named <= set(SCENARIOS)
