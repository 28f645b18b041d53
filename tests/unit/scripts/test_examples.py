"""The example projects: what is run, with which versions, and that each shows what the page says it does."""

from __future__ import annotations

import re

import pytest

from scripts import examples

SHOWN = {
    "a retry": r"is_asked_again\(",
    "a dead letter": r"is_a_dead_letter",
    "a delayed retry with the clock moved": r"clock\.advance\(WAIT_S",
    "a broker that restarts": r"burrowmq\.restart\(\)",
    "a full disk": r"fail_disk\(errno\.ENOSPC\)",
}


def test_there_are_three_and_the_page_names_them() -> None:
    assert examples.projects() == ["celery_shop", "django_mail", "fastapi_orders"]
    page = (examples.EXAMPLES / "README.md").read_text(encoding="utf-8")
    for project in examples.projects():
        assert f"({project})" in page


@pytest.mark.parametrize("project", examples.projects())
def test_each_pins_its_versions_and_shows_all_five(project: str) -> None:
    folder = examples.EXAMPLES / project
    lines = (folder / "requirements.txt").read_text(encoding="ascii").split()
    assert lines
    assert all(re.fullmatch(r"[A-Za-z0-9-]+==[0-9.]+", line) for line in lines)
    suite = "".join(path.read_text(encoding="utf-8") for path in folder.glob("test_*.py"))
    assert [what for what, found in SHOWN.items() if not re.search(found, suite)] == []


def test_an_unknown_one_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert examples.main(["no_such"]) == 2
    assert "there is no example no_such" in capsys.readouterr().err
