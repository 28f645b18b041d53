"""scripts.vendor: packages come as they were pinned, or not at all."""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
from typing import Any

import pytest

from scripts import vendor


def archive(**members: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as files:
        for name, data in members.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(data)
            files.addfile(member, io.BytesIO(data))
    return made.getvalue()


def serve(monkeypatch: pytest.MonkeyPatch, data: bytes) -> list[str]:
    asked: list[str] = []

    def urlopen(url: str, timeout: float) -> Any:
        asked.append(url)
        return io.BytesIO(data)

    monkeypatch.setattr("urllib.request.urlopen", urlopen)
    return asked


def package(data: bytes) -> vendor.Package:
    digest = base64.b64encode(hashlib.sha512(data).digest()).decode()
    return vendor.Package("lib", "1.2.3", f"sha512-{digest}", {"hooks": "hooks.js"})


def test_a_pinned_package_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    data = archive(hooks=b'import{a}from"preact";\n//# sourceMappingURL=hooks.js.map', other=b"")
    asked = serve(monkeypatch, data)
    assert vendor.fetch(package(data)) == {"hooks.js": b'import{a}from"./preact.js";'}
    assert asked == ["https://registry.npmjs.org/lib/-/lib-1.2.3.tgz"]


def test_another_package_of_that_name_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    pinned = package(archive(hooks=b"good"))
    serve(monkeypatch, archive(hooks=b"bad"))
    with pytest.raises(ValueError, match="has the hash sha512-"):
        vendor.fetch(pinned)


def test_the_chart_library_becomes_a_module() -> None:
    assert vendor.changed("uplot.js", b"var uPlot=1;") == b"var uPlot=1;export default uPlot;\n"
