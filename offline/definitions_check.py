"""The definitions under `burrowmq-store check`: the whole database, its log, and that each row is as it was written.

A start refuses a database that is damaged or of a newer format. SQLite writes beside a database in WAL mode even to
read it; so it reads one without a log as a file that nobody changes, and of one with a log a copy. State owned: the
copy, while it is read.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from urllib.parse import quote

from burrowmq.offline.directory import StoreDirectory
from burrowmq.offline.report import FileReport
from burrowmq.storage.directory.definition_log import check_log
from burrowmq.storage.directory.definition_store import DefinitionChange
from burrowmq.storage.directory.definition_table import FORMAT, has_checksums, rows_of
from burrowmq.storage.directory.recovery import DEFINITIONS_FILE
from burrowmq.storage.errors import StorageError

# SQLite takes a shorter file for a new database, and a start does not.
_HEADER = 100


@dataclass(slots=True)
class DefinitionsCheck:
    """What is said of the file, None where it is neither there nor needed, and its rows as far as they can be read."""

    report: FileReport | None
    rows: list[DefinitionChange] = field(default_factory=list)


def check_definitions(directory: StoreDirectory) -> DefinitionsCheck:
    """Look at the definitions."""
    filesystem = directory.filesystem
    path, vhosts = f"{directory.path}/{DEFINITIONS_FILE}", f"{directory.path}/vhosts"
    is_needed = filesystem.exists(vhosts) and filesystem.listdir(vhosts)
    if not filesystem.exists(path):
        report = FileReport(path)
        report.problems.append("missing: a start refuses the store without it, restore it")
        return DefinitionsCheck(report if is_needed else None)
    report = FileReport(path, filesystem.file_size(path))
    if report.size < _HEADER:
        (report.problems if is_needed else report.notes).append("cut off")
        return DefinitionsCheck(report)
    rows: list[DefinitionChange] = []
    try:
        check_log(filesystem, f"{path}-wal")
        with _readable(directory, path) as place, closing(_connected(place)) as connection:
            rows = _read(connection, report)
    except sqlite3.OperationalError as error:
        report.problems.append(f"cannot be read: {error}")
    except (sqlite3.Error, ValueError, TypeError, StorageError) as error:
        report.problems.append(str(error))
    except OSError as error:
        report.problems.append(f"cannot be read: {error.strerror or error}")
    return DefinitionsCheck(report, rows)


@contextmanager
def _readable(directory: StoreDirectory, path: str) -> Iterator[str]:
    """Give an address under which SQLite reads the database without writing beside it."""
    log = f"{path}-wal"
    if not directory.filesystem.exists(log) or not directory.filesystem.file_size(log):
        yield f"file:{quote(os.fsencode(path))}?mode=ro&immutable=1"
        return
    with TemporaryDirectory(prefix="burrowmq-store-") as folder:
        for each in (path, log):
            shutil.copyfile(each, f"{folder}/{each.rpartition('/')[2]}")
        yield f"file:{quote(os.fsencode(folder))}/{DEFINITIONS_FILE}"


def _connected(place: str) -> sqlite3.Connection:
    return sqlite3.connect(place, uri=True, isolation_level=None)


def _read(connection: sqlite3.Connection, report: FileReport) -> list[DefinitionChange]:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > FORMAT:
        report.problems.append(f"has format {version}, this release reads up to {FORMAT}")
        return []
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if found != "ok":
        report.problems.append(" ".join(found.split()))
        return []
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name='definition'").fetchone():
        report.notes.append("nothing in it yet")
        return []
    if has_checksums(connection):
        rows: list[DefinitionChange] = list(rows_of(connection, report.path))
        report.records = len(rows)
        return rows
    for (value,) in connection.execute("SELECT value FROM definition"):
        json.loads(value)
        report.records += 1
    return []
