"""The page at /."""

from __future__ import annotations

from tests.support.served import Served


def test_the_page_loads_without_a_login_and_with_a_strict_policy(served: Served) -> None:
    for path, kind in (("/", "text/html"), ("/ui.js", "text/javascript"), ("/ui.css", "text/css")):
        answer = served.api("GET", path, login=None)
        assert answer.status == 200
        assert answer.headers["content-type"].startswith(kind)
        assert "unsafe" not in answer.headers["content-security-policy"]
