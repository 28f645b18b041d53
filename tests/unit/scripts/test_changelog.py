"""The changelog: what a release makes of the fragments."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scripts import changelog


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a tree with two fragments, and work in it."""
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes" / "README.md").write_text("how")
    (tmp_path / "changes" / "a-loss.fixed.md").write_text("Nothing is lost\nany more.\n")
    (tmp_path / "changes" / "b.c.added.md").write_text("A thing.\n")
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{changelog.MARK}\n\n## 0.1.0\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(sys, "argv", ["changelog", version])
    changelog.main()


def test_a_release_takes_the_fragments_in(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, "0.2.0")
    text = (tree / "CHANGELOG.md").read_text()
    assert "### Added\n\n- A thing.\n\n### Fixed\n\n- Nothing is lost\n  any more.\n" in text
    assert text.index("## 0.2.0 - ") < text.index("## 0.1.0")
    assert [path.name for path in (tree / "changes").iterdir()] == ["README.md"]


@pytest.mark.parametrize("version", ["", "--check", "0.2", "v0.2.0"])
def test_what_is_no_version_changes_nothing(
    tree: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    before = (tree / "CHANGELOG.md").read_text()
    with pytest.raises(SystemExit, match="usage"):
        run(monkeypatch, version)
    assert (tree / "CHANGELOG.md").read_text() == before
    assert len(list((tree / "changes").iterdir())) == 3
