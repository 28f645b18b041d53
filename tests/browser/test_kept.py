"""What a page does not show, or a browser cannot say, is neither lost nor done to something else."""

from __future__ import annotations

from collections.abc import Callable

from tests.browser.looker import Looker
from tests.support.node_client import NodeClient

WIDE = {"width": 1280, "height": 1000}


def test_a_policy_that_is_changed_keeps_what_its_form_has_no_field_for(
    look: Callable[..., Looker], node: NodeClient
) -> None:
    definition = {"dead-letter-exchange": "", "dead-letter-routing-key": "dead", "max-length": 5}
    body = {"pattern": "^a", "definition": definition, "apply-to": "classic_queues", "priority": 3}
    node.api("PUT", "/api/policies/%2F/dead", body)
    looker = look(viewport=WIDE).enter()
    looker.go("policies")
    looker.page.get_by_role("row").filter(has_text="dead").get_by_role(
        "button", name="Edit"
    ).click()
    form = looker.page.locator("details[open]")
    form.get_by_label("Max length", exact=False).first.fill("7")
    form.get_by_role("button", name="Save").click()
    looker.page.get_by_role("row").filter(has_text="Lim 7").wait_for()
    found = node.get("/api/policies/%2F/dead")
    assert found["definition"] == definition | {"max-length": 7}
    assert (found["apply-to"], found["priority"]) == ("classic_queues", 3)
    assert looker.complaints == []
