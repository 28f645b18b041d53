"""Which tests are a module's own, and the table of what they reach."""

from __future__ import annotations

import importlib.util

import pytest

from scripts import own_coverage
from scripts.own_coverage import BEGIN, END, Row, covers, own_tests_of, sums, table, written


def owners(*tests: str, **docstrings: str) -> dict[str, tuple[str, ...]]:
    names = ["a/disk.py", "a/disk_sizes.py", "a/_record_py.py", "a/b/__init__.py", "a/b/c.py"]
    return own_tests_of(names, {**dict.fromkeys(tests, ""), **docstrings})


def test_a_test_at_the_same_place_is_the_modules_own():
    found = owners("tests/unit/a/test_disk.py", "tests/unit/a/test_disk_full.py")
    assert found["a/disk.py"] == ("tests/unit/a/test_disk.py", "tests/unit/a/test_disk_full.py")
    assert found["a/disk_sizes.py"] == ()


def test_the_module_with_the_longest_name_has_the_test():
    found = owners("tests/unit/a/test_disk_sizes.py", "tests/unit/a/test_disk_sizes_of_all.py")
    assert found["a/disk.py"] == ()
    assert len(found["a/disk_sizes.py"]) == 2


def test_a_leading_underscore_counts_for_nothing():
    assert owners("tests/unit/a/test_record_py.py")["a/_record_py.py"]


@pytest.mark.parametrize("test", ["tests/unit/a/test_b.py", "tests/unit/a/b/test_b.py"])
def test_a_packages_own_code_has_the_packages_name(test):
    assert owners(test)["a/b/__init__.py"] == (test,)


def test_tests_of_the_same_name_elsewhere_are_not_its_own():
    assert owners("tests/unit/test_disk.py", "tests/property/a/test_disk.py")["a/disk.py"] == ()


def test_a_covers_line_names_modules_wherever_the_test_is():
    test = "tests/property/test_model.py"
    found = owners(**{test: "Model.\n\nCovers: a/disk.py,\n  a/b/c.py, other/d.py"})
    assert (found["a/disk.py"], found["a/b/c.py"]) == ((test,), (test,))
    assert covers("It covers: a/disk.py") == []


@pytest.mark.slow
def test_every_test_of_the_checkout_is_somebodys_or_of_no_module_of_the_server():
    own = own_tests_of(own_coverage.modules(), own_coverage.docstrings())
    assert "tests/unit/broker/queue/test_queue.py" in own["broker/queue/queue.py"]
    assert "tests/unit/scripts/test_own_coverage.py" not in {
        test for tests in own.values() for test in tests
    }


ROWS = [
    Row("a/good.py", 300, 95.0, 96.0, ("t/test_good.py",)),
    Row("a/bad.py", 100, 10.0, 60.0, ()),
]


def test_the_worst_comes_first():
    assert table(ROWS).splitlines()[2:] == [
        "| `a/bad.py` | 100 | 10 % | 60 % | none |",
        "| `a/good.py` | 300 | 95 % | 96 % | test_good.py |",
    ]


def test_sums_are_weighed_by_statements():
    assert sums(ROWS) == (
        "2 modules with 400 statements: their own tests reach 73.8 %, all unit tests 87.0 %.\n"
        "Modules of which they reach less than 80 %: 1."
    )


def test_the_page_keeps_what_stands_around_the_table():
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    new = written(page, ROWS)
    assert new.startswith(f"before\n{BEGIN}\n2 modules")
    assert new.endswith(f"\n{END}\nafter\n")
    assert "a/bad.py" in new
    assert "a/good.py" not in new
    assert "old" not in new


def test_two_contexts_of_one_file_are_told_apart(tmp_path, monkeypatch):
    """One function is reached by the module's own test, the other by another's, the import by both."""
    (tmp_path / "made.py").write_text("def one():\n    return 1\n\n\ndef two():\n    return 2\n")
    monkeypatch.setattr(own_coverage, "ROOT", tmp_path)
    monkeypatch.setattr(own_coverage, "DATA_FILE", tmp_path / "data.sqlite")
    (tmp_path / "pyproject.toml").write_text("")
    watched = own_coverage.recorder([str(tmp_path)])
    spec = importlib.util.spec_from_file_location("made_for_own_coverage", tmp_path / "made.py")
    module = importlib.util.module_from_spec(spec)
    with watched.collect():
        watched.switch_context(own_coverage.IMPORT)
        spec.loader.exec_module(module)
        watched.switch_context("tests/own.py")
        module.one()
        watched.switch_context("tests/other.py")
        module.two()
    watched.save()
    (row,) = own_coverage.rows({"made.py": ("tests/own.py",)})
    assert row == Row("made.py", 4, 75.0, 100.0, ("tests/own.py",))
