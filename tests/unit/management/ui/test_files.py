"""burrowmq.management.ui.files: how the UI's files are served, and what is in them."""

from __future__ import annotations

import gzip
import hashlib
import http.client
import posixpath
import re
from pathlib import Path

import pytest

from burrowmq.management.ui import files
from scripts import vendor
from tests.support.served import Served

OWN = [
    path
    for path in sorted(files.STATIC.rglob("*"))
    if path.suffix in {".js", ".html"} and path.parent.name != "vendor"
]
NEEDED = re.compile(r'(?:href|src)="(ui/[^"]+)"|from "(\.[^"]+)"')
LATER = re.compile(r'import\("(\.[^"]+)"\)')
EDITION = f"ui/{files.edition()}/"
WEIGHT_MAX = 80_000


def test_the_page_and_its_files_need_no_login_and_have_a_strict_policy(served: Served) -> None:
    paths = {"/": "text/html"}
    paths |= {f"/ui/{name}": files.KINDS[Path(name).suffix] for name in files.names()}
    assert "/ui/vendor/preact.js" in paths
    for path, kind in paths.items():
        answer = served.api("GET", path, login=None)
        assert (answer.status, answer.headers["content-type"].partition(";")[0]) == (200, kind)
        policy = answer.headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "path", ["/ui/", "/ui/nosuch.js", "/ui/../files.py", "/ui/%2e%2e/files.py", "/ui//etc/passwd"]
)
def test_there_is_nothing_else(served: Served, path: str) -> None:
    assert served.api("GET", path, login=None).status == 404


def raw(served: Served, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    connection.request(
        "GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()}
    )
    answer = connection.getresponse()
    answer.data = answer.read()  # type: ignore[attr-defined]
    connection.close()
    return answer


def test_a_file_is_sent_once_and_compressed(served: Served) -> None:
    plain = raw(served, "/ui/app.js")
    packed = raw(served, "/ui/app.js", Accept_Encoding="gzip, br")
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data  # type: ignore[attr-defined]
    assert plain.headers["Vary"].startswith("Accept-Encoding")
    tag = plain.headers["ETag"]
    again = raw(served, "/ui/app.js", If_None_Match=tag)
    assert (again.status, again.data) == (304, b"")  # type: ignore[attr-defined]
    assert raw(served, "/ui/app.js", If_None_Match='"other"').status == 200


def modules(*names: str) -> set[str]:
    """These files and every one that one of them needs at once; what is fetched later is left out, but for charts."""
    wanted, seen = list(names), set()
    while wanted:
        name = wanted.pop()
        if name in seen:
            continue
        seen.add(name)
        for asked, imported in NEEDED.findall(files.file(name).plain.decode()):
            near = posixpath.join(posixpath.dirname(name), imported)
            wanted.append(asked.removeprefix(EDITION) if asked else posixpath.normpath(near))
        if name == "chart.js":
            wanted += ["vendor/uplot.js", "vendor/uplot.css"]
    return seen


def test_a_browser_asks_for_a_file_once_and_for_the_page_each_time(served: Served) -> None:
    page = raw(served, "/")
    asked = re.findall(r'(?:href|src)="([^"]+)"', page.data.decode())  # type: ignore[attr-defined]
    assert page.headers["Cache-Control"] == "no-cache"
    assert len(asked) > 10
    for path in asked:
        assert path.startswith(EDITION)
        assert raw(served, f"/{path}").headers["Cache-Control"] == "max-age=31536000, immutable"


@pytest.mark.parametrize("folder", ["ui", "ui/0123456789abcdef"])
def test_a_page_of_another_edition_is_given_what_there_is_and_asks_again(
    served: Served, folder: str
) -> None:
    answer = raw(served, f"/{folder}/app.js")
    assert (answer.status, answer.headers["Cache-Control"]) == (200, "no-cache")


def test_another_edition_has_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "index.html").write_text("<p>")
    (tmp_path / "a.js").write_text("1")
    monkeypatch.setattr(files, "STATIC", tmp_path)
    first = files.edition.__wrapped__()
    (tmp_path / "a.js").write_text("2")
    assert files.edition.__wrapped__() != first


VIEWS = sorted(set(LATER.findall(files.file("views.js").plain.decode())))


@pytest.mark.parametrize("view", VIEWS)
def test_every_page_is_light(view: str) -> None:
    """What a browser fetches whose first page it is: the frame, its styles, and all that the page needs."""
    seen = modules("index.html", view.removeprefix("./"))
    assert {"app.js", "app.css", "vendor/hooks.js"} <= seen
    assert sum(len(files.file(name).compressed) for name in seen) <= WEIGHT_MAX


def test_the_login_and_search_come_when_they_are_needed() -> None:
    assert not {"pages/login.js", "search.js"} & modules("index.html")
    assert {"./pages/login.js", "./search.js"} <= set(VIEWS)


def test_every_page_is_fetched_by_somebody() -> None:
    fetched = set().union(*(modules("index.html", view.removeprefix("./")) for view in VIEWS))
    pages = {name for name in files.names() if name.startswith("pages/")}
    assert pages <= fetched
    assert len(VIEWS) > 8


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_nothing_makes_markup_or_code_of_text(path: Path) -> None:
    text = path.read_text()
    for word in (
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
        "new Function",
    ):
        assert word not in text, word
    assert "dangerouslySetInnerHTML" not in text
    assert not re.search(r"\son\w+=\"|style=\"|javascript:", text)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), "nothing from elsewhere"


def test_the_libraries_are_those_that_were_taken_with_their_licences() -> None:
    there = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in vendor.TARGET.iterdir()
    }
    assert there == vendor.HASHES
    assert {f"{package.name}.LICENSE" for package in vendor.PACKAGES} <= set(there)


STATICALLY = re.compile(r'^import [^"]*from "(\.[^"]+)"', re.MULTILINE)
AHEAD = re.compile(rf'<link rel="modulepreload" href="{EDITION}([^"]+)">')


def test_the_page_names_all_that_the_frame_and_the_first_page_need() -> None:
    """Else a browser finds out file by file, each after the one that asks for it."""
    wanted, seen = ["app.js", "pages/overview.js"], set[str]()
    while wanted:
        name = wanted.pop()
        if name not in seen:
            seen.add(name)
            here = posixpath.dirname(name)
            found = STATICALLY.findall(files.file(name).plain.decode())
            wanted += [posixpath.normpath(posixpath.join(here, near)) for near in found]
    named = AHEAD.findall(files.file("index.html").plain.decode())
    assert sorted(named) == sorted(seen - {"app.js"})


def test_what_is_asked_for_early_is_what_the_first_page_asks_for() -> None:
    early = files.file("early.js").plain.decode()
    (path,) = re.findall(r'const path = "([^"]+)"', early)
    (usual,) = re.findall(r'const USUAL = "(\d+)"', files.file("history.js").plain.decode())
    assert "burrowmq/pages/overview?${asked}" in files.file("pages/overview.js").plain.decode()
    assert path == f"burrowmq/pages/overview?history={usual}"
