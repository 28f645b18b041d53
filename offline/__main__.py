"""burrowmq-store: argv to a sub-command to an exit status.

    burrowmq-store [--data-dir DIR] COMMAND ...

Exit status: as `_STATUS` says. The report goes to standard output, progress and errors to standard error; whoever
closes standard output early (`head`) wants no more and no words about it. COMMANDS names the sub-commands. Each is a
module with `add_arguments(parser)` and `run(directory, arguments, streams) -> int`; one that makes the store itself has
`MUST_EXIST = False`, one that writes nothing `ONLY_READS = True`.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from burrowmq.offline.directory import CannotUse, directory_name, open_directory
from burrowmq.offline.report import shown
from burrowmq.offline.streams import Streams
from burrowmq.storage.errors import StorageError

OK, DAMAGED, USAGE, UNAVAILABLE, NO_MEMORY, IO_ERROR, INTERRUPTED = 0, 1, 64, 69, 71, 74, 130
_STATUS = (
    "Exit status: 0 done, 1 damage was found or damaged messages were left behind, 64 bad arguments, 69 the directory"
    " cannot be used (a node runs on it, there is no store in it), 71 no memory was left, 74 reading or writing failed,"
    " 130 interrupted."
)

# name -> (module, what it does)
COMMANDS = {
    "check": (
        "burrowmq.offline.check",
        "read every byte of the store and report what is live, garbage or damaged",
    ),
    "quarantine": (
        "burrowmq.offline.quarantine",
        "list the damaged messages that were set aside",
    ),
    "restore": ("burrowmq.offline.restore", "bring a backup back into an empty data directory"),
    "resegment": ("burrowmq.offline.resegment", "write the store anew with other limits"),
}


class _Parser(argparse.ArgumentParser):
    """Ends with the exit status of sysexits for bad arguments."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and end."""
        self.print_usage(sys.stderr)
        self.exit(USAGE, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="burrowmq-store",
        description="Works on a data directory that no node is using.",
        epilog=_STATUS,
    )
    parser.add_argument(
        "--data-dir",
        type=directory_name,
        metavar="DIR",
        default=os.environ.get("BURROWMQ_DATA_DIR") or "data",
        help="the node's data directory (default: ./data)",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (module, text) in COMMANDS.items():
        import_module(module).add_arguments(
            commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        )
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Console entry point."""
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # any name can be told in any locale
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(_parser().parse_args(argv))
        sys.stdout.flush()
    except CannotUse as error:
        return _failed(UNAVAILABLE, str(error))
    except BrokenPipeError:
        _give_up_output()
        return IO_ERROR
    except StorageError as error:
        return _failed(IO_ERROR, str(error))
    except OSError as error:
        # What fails in the directory names its file; who looks for the working directory gives no name.
        is_nowhere = isinstance(error, FileNotFoundError)
        what = "the working directory" if is_nowhere else "the report cannot be written"
        return _failed(IO_ERROR, f"{error.filename or what}: {error.strerror or error}")
    except MemoryError as error:
        error.with_traceback(None)  # lets go of what was made, so that there is some for the words
        return _failed(
            NO_MEMORY, "no memory is left: raise its limit (ulimit -v); it ends as killed"
        )
    except KeyboardInterrupt:
        return _failed(INTERRUPTED, "interrupted")
    return code


def _open_what_is_closed() -> None:
    """Have both streams, also for who closed them (`>&-`) and only wants the exit status."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - until the end


def _run(arguments: argparse.Namespace) -> int:
    command = import_module(COMMANDS[arguments.command][0])
    must_exist = getattr(command, "MUST_EXIST", True)
    only_reads = getattr(command, "ONLY_READS", False)
    with open_directory(
        arguments.data_dir, must_exist=must_exist, only_reads=only_reads
    ) as directory:
        return int(command.run(directory, arguments, Streams(sys.stdout, sys.stderr)))


def _failed(code: int, text: str) -> int:
    """Say why it ends, behind what was written before."""
    try:
        sys.stdout.flush()
    except OSError:
        _give_up_output()
    sys.stderr.write(f"burrowmq-store: {shown(text)}\n")
    return code


def _give_up_output() -> None:
    """Make sure that Python does not write to standard output again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
