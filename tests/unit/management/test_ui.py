"""The page at /."""

from __future__ import annotations

from tests.support.served import Served


def test_the_page_loads_without_a_login_and_with_a_strict_policy(served: Served) -> None:
    for path, kind in (("/", "text/html"), ("/ui.js", "text/javascript"), ("/ui.css", "text/css")):
        answer = served.api("GET", path, login=None)
        assert answer.status == 200
        assert answer.headers["content-type"].startswith(kind)
        assert "unsafe" not in answer.headers["content-security-policy"]


def test_the_script_says_what_went_wrong_and_bears_a_password_in_the_address(
    served: Served,
) -> None:
    script = served.api("GET", "/ui.js", login=None).body
    # fetch refuses a relative address on a page at http://user:password@host/.
    assert 'fetch(location.origin + location.pathname + "api/"' in script
    assert "refresh().catch(" in script
