"""Command line of the benchmark: `python -m bench list | run | quick | full | table | compare`.

Exit status 0, 1 when a measurement failed or `compare` found a regression, 2 for a wrong command line. Progress goes to standard
error, tables to standard output.
"""

import argparse
import signal
import sys
from pathlib import Path

from bench import native, reference, report, results, runner
from bench.scenarios import SCENARIOS

_RUNS = {"run": "measure", "quick": "the same as run", "full": "the same as run --full"}
_DEFAULT_OUT = Path("bench-results") / "latest.json"


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _add_run_options(run: argparse.ArgumentParser) -> None:
    run.add_argument("--full", action="store_true", help="full sizes (default: minutes)")
    run.add_argument("--only", type=_names, default=[], help="scenario keys or their beginnings")
    run.add_argument("--peers", type=_names, default=[], help="default: all that are installed")
    run.add_argument("--rounds", type=int, help="default: 3 with --full, else 1")
    run.add_argument("--out", type=Path, default=_DEFAULT_OUT, help=f"default: {_DEFAULT_OUT}")
    run.add_argument("--scratch", type=Path, help="where nodes keep their data (default: TMPDIR)")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="the scenarios and the peers that are installed")
    for name, text in _RUNS.items():
        _add_run_options(commands.add_parser(name, help=text))
    table = commands.add_parser("table", help="markdown of a result file")
    table.add_argument("file", type=Path)
    compare = commands.add_parser("compare", help="status 1 for a regression")
    compare.add_argument("old", type=Path, nargs="?", help="a result file")
    compare.add_argument("new", type=Path, nargs="?", help="a later result file")
    compare.add_argument("--ref", help="instead of files: measure this commit beside the checkout")
    compare.add_argument("--only", type=_names, default=[], help="with --ref: scenario keys")
    compare.add_argument("--rounds", type=int, default=3, help="with --ref")
    compare.add_argument(
        "--longer",
        type=int,
        default=1,
        metavar="K",
        help="with --ref: so many times the messages, where a row takes less than a second",
    )
    compare.add_argument(
        "--turns",
        type=int,
        default=1,
        metavar="K",
        help="with --ref: in each round both commits' nodes run side by side and are measured by turns, K times each",
    )
    return parser


def _list() -> int:
    for scenario in SCENARIOS:
        print(f"{scenario.key:20} {scenario.title}")
    for peer, version in runner.installed([]).items():
        print(f"peer {peer:15} {version}")
    return 0


def _run(options: argparse.Namespace) -> int:
    is_full = options.full or options.command == "full"
    scenarios = runner.select(options.only, is_full=is_full)
    if any(not each.is_perftest for each in scenarios):
        native.build()
    versions = runner.installed(options.peers)
    plan = runner.Plan(
        is_full=is_full,
        rounds=options.rounds or (3 if is_full else 1),
        scenarios=scenarios,
        peers=tuple(versions),
        scratch=options.scratch,
    )
    found = runner.run(plan, versions)
    found.write(options.out)
    print(report.markdown(found))
    runner.say(f"results are in {options.out}")
    return 1 if any(measure.failure for measure in found.measures) else 0


def _compare(options: argparse.Namespace) -> int:
    if options.longer < 1 or options.turns < 1:
        raise ValueError("--longer and --turns take whole numbers from 1 on")
    if options.ref is None and (options.longer, options.turns) != (1, 1):
        raise ValueError("--longer and --turns belong to --ref: files were measured before")
    if options.ref is not None:
        old, new = reference.measure(
            options.ref, options.only, options.rounds, options.longer, options.turns
        )
    elif options.old is None or options.new is None:
        raise ValueError("compare needs two result files, or --ref COMMIT")
    else:
        old, new = results.read(options.old), results.read(options.new)
    print(report.compare(old, new))
    return 1 if report.regressions(old, new) else 0


def main() -> int:
    """Entry point; returns the exit status."""
    options = _parser().parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the brokers are stopped on the way out
    try:
        if options.command == "list":
            return _list()
        if options.command in _RUNS:
            return _run(options)
        if options.command == "table":
            print(report.markdown(results.read(options.file)))
            return 0
        return _compare(options)
    except (ValueError, OSError, native.GeneratorFailed) as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
