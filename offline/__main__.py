"""burrowmq-store: argv to a sub-command to an exit status.

    burrowmq-store [--data-dir DIR] COMMAND ...

Exit status: 0 done, 1 damage was found, 64 bad arguments, 69 the directory cannot be used (a node runs on it, there is
no store in it), 74 reading or writing failed. The report goes to standard output, progress and errors to standard
error. COMMANDS names the sub-commands. Each is a module with `add_arguments(parser)` and
`run(directory, arguments, streams) -> int`; one that makes the store itself has `MUST_EXIST = False`.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

from burrowmq.offline.directory import CannotUse, open_directory
from burrowmq.offline.streams import Streams
from burrowmq.storage.errors import StorageError

OK, DAMAGED, USAGE, UNAVAILABLE, IO_ERROR = 0, 1, 64, 69, 74

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
        prog="burrowmq-store", description="Works on a data directory that no node is using."
    )
    parser.add_argument(
        "--data-dir",
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
    arguments = _parser().parse_args(argv)
    command = import_module(COMMANDS[arguments.command][0])
    streams = Streams(sys.stdout, sys.stderr)
    try:
        must_exist = getattr(command, "MUST_EXIST", True)
        with open_directory(arguments.data_dir, must_exist=must_exist) as directory:
            return int(command.run(directory, arguments, streams))
    except CannotUse as error:
        sys.stderr.write(f"burrowmq-store: {error}\n")
        return UNAVAILABLE
    except (StorageError, OSError) as error:
        sys.stderr.write(f"burrowmq-store: {error}\n")
        return IO_ERROR
    except KeyboardInterrupt:
        sys.stderr.write("burrowmq-store: interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
