"""burrowmq-spark: argv to a job to an exit status. With spark-submit, this file is the application.

Owns no state. Exit status: 0 done, 1 the job found damage, 64 bad arguments, 70 the job failed, 78 what Spark needs is
not installed (java.py). A job is a module with `add_arguments(parser)` and `run(spark, arguments, out) -> int`; JOBS
names it, and whether it needs Spark.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple, NoReturn

from pyspark_amqp_jobs.arguments import BadArguments, pair
from pyspark_amqp_jobs.java import refusal
from pyspark_amqp_jobs.session import open_session

OK, USAGE, FAILED, CANNOT_START = 0, 64, 70, 78


class Job(NamedTuple):
    """One job."""

    module: str
    summary: str
    needs_spark: bool = True


JOBS = {
    "archive": Job("pyspark_amqp_jobs.archive", "take queues into Parquet"),
    "dead-letters": Job(
        "pyspark_amqp_jobs.dead_letters", "report dead letters by queue, reason and hour"
    ),
    "replay": Job("pyspark_amqp_jobs.replay", "publish what was archived"),
    "store-audit": Job("pyspark_amqp_jobs.audit", "check a store, say what of it is live"),
    "traffic": Job("pyspark_amqp_jobs.traffic", "count what the firehose shows"),
    "spool": Job(
        "pyspark_amqp_jobs.spools", "list what lies in a spool, get it out", needs_spark=False
    ),
}


class _Parser(argparse.ArgumentParser):
    """Ends with the exit status of sysexits for bad arguments."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and end."""
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


def parser_for(argv: Sequence[str]) -> argparse.ArgumentParser:
    """Return the parser; only the job that is asked for is loaded."""
    parser = _Parser(prog="burrowmq-spark", description="Jobs on queues, archives and stores.")
    parser.add_argument(
        "--conf", metavar="NAME=VALUE", type=pair, action="append", default=[],
        help="a setting of Spark, where spark-submit does not give it",
    )  # fmt: skip
    jobs = parser.add_subparsers(dest="job", metavar="JOB", required=True)
    for name, job in JOBS.items():
        added = jobs.add_parser(
            name, help=job.summary, description=f"{job.summary[0].upper()}{job.summary[1:]}."
        )
        if name in argv:
            import_module(job.module).add_arguments(added)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Console entry point."""
    words = sys.argv[1:] if argv is None else list(argv)
    job = next((word for word in words if word in JOBS), "")
    try:
        return _run(parser_for(words).parse_args(words))
    except BadArguments as error:
        return _say(USAGE, job, str(error))
    except Exception as error:  # noqa: BLE001 - Spark's errors are of many kinds; their first lines say what it was
        missing = refusal(error, os.environ)
        if missing is not None:
            return _say(CANNOT_START, job, missing)
        text = "\n".join(str(error).strip().splitlines()[:12])
        return _say(FAILED, job, f"{type(error).__name__}: {text}")


def _run(arguments: argparse.Namespace) -> int:
    job = JOBS[arguments.job]
    module = import_module(job.module)
    if not job.needs_spark:
        return int(module.run(None, arguments, sys.stdout))
    spark = open_session(arguments.job, dict(arguments.conf))
    try:
        return int(module.run(spark, arguments, sys.stdout))
    finally:
        spark.stop()


def _say(status: int, job: str, text: str) -> int:
    sys.stderr.write(f"burrowmq-spark {job}: {text}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
