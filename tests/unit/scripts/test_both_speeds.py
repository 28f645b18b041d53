import subprocess
import sys
from pathlib import Path

import pytest

from scripts.both_speeds import environment_of, verdict

SHOW = """
import os, sys
speed = "interpreted" if os.environ.get("BURROWMQ_PURE") else sys.argv[1]
print(speed, "begins"); sys.stdout.flush()
print(speed, "ends")
sys.exit({codes}[speed])
"""


def both(tmp_path: Path, **codes: int) -> tuple[int, str]:
    code = SHOW.replace("{codes}", repr(codes))
    show = [sys.executable, "-c", code]
    spark = [*show, "spark"] if "spark" in codes else None
    program = (
        "import sys; from pathlib import Path; from scripts.both_speeds import run\n"
        f"sys.exit(run({[*show, 'compiled']}, Path({str(tmp_path / 'logs')!r}), {spark}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


def test_only_the_switch_differs() -> None:
    base = {"PATH": "p", "BURROWMQ_PURE": "1"}
    assert environment_of("compiled", base) == {"PATH": "p"}
    assert environment_of("interpreted", {"PATH": "p"}) == base


def test_one_output_after_the_other_and_a_verdict(tmp_path: Path) -> None:
    code, text = both(tmp_path, compiled=0, interpreted=0)
    assert code == 0
    assert [line for line in text.splitlines() if not line.startswith("====")] == [
        "compiled begins",
        "compiled ends",
        "interpreted begins",
        "interpreted ends",
    ]
    assert text.splitlines()[-1] == "==== compiled: passed, interpreted: passed"


@pytest.mark.parametrize(("compiled", "interpreted", "code"), [(1, 0, 1), (0, 2, 2), (3, 2, 3)])
def test_a_failure_at_either_speed_is_a_failure(
    tmp_path: Path, compiled: int, interpreted: int, code: int
) -> None:
    assert both(tmp_path, compiled=compiled, interpreted=interpreted)[0] == code


def test_what_only_one_speed_has_is_no_failure_of_the_other(tmp_path: Path) -> None:
    assert both(tmp_path, compiled=0, interpreted=5)[0] == 0
    assert both(tmp_path, compiled=5, interpreted=0)[0] == 0
    assert both(tmp_path, compiled=5, interpreted=5)[0] == 5
    assert both(tmp_path, compiled=1, interpreted=5)[0] == 1


def test_sparks_run_beside_both_and_speak_last(tmp_path: Path) -> None:
    code, text = both(tmp_path, compiled=0, interpreted=0, spark=0)
    assert code == 0
    assert text.splitlines()[-4:] == [
        "==== Spark",
        "spark begins",
        "spark ends",
        "==== compiled: passed, interpreted: passed, Spark: passed",
    ]
    assert (tmp_path / "logs" / "test-spark.log").read_text() == "spark begins\nspark ends\n"
    assert both(tmp_path, compiled=0, interpreted=0, spark=3)[0] == 3
    code, text = both(tmp_path, compiled=0, interpreted=5, spark=5)
    assert code == 0
    assert text.splitlines()[-1] == "==== compiled: passed, interpreted: NOT RUN, Spark: NOT RUN"


def test_the_verdict_names_the_speed_that_failed() -> None:
    assert (
        verdict({"compiled": 0, "interpreted": 1})
        == "compiled: passed, interpreted: FAILED (exit status 1)"
    )
