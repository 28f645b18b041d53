"""The terms of a clean stop under `burrowmq-store check`: whether they are whole, and the index files that they name.

A file that is not there has no checksum that could fail, and a start that finds an index file missing keeps the rest:
only the terms know that there was one, and how many messages it had entries of. After another stop nobody knows. A
missing file with bodies is told by those who look for them (`queue_check`, `segment_check`). State owned: none.
"""

from __future__ import annotations

from burrowmq.offline.directory import StoreDirectory
from burrowmq.offline.report import FileReport, missing
from burrowmq.storage.directory.clean_stop import files_in
from burrowmq.storage.directory.terms import TERMS_FILE, read_terms
from burrowmq.storage.names import vhost_directory


def check_terms(directory: StoreDirectory) -> tuple[list[FileReport], int]:
    """Give a report of damaged terms, one of each missing file, and how many messages are lost by those."""
    if not directory.is_clean:
        return [], 0
    path, seen = f"{directory.path}/{TERMS_FILE}", directory.filesystem
    try:
        parts = read_terms(seen, directory.path)
    except OSError as error:
        return [FileReport(path, problems=[f"cannot be read: {error.strerror or error}"])], 0
    if parts is None:
        size = seen.file_size(path) if seen.exists(path) else 0
        problem = "not what the clean stop wrote: a start looks at every file instead"
        return [FileReport(path, size, problems=[problem])], 0
    reports, lost = list[FileReport](), 0
    for vhost, name, segments in files_in(parts):
        place = f"{directory.path}/vhosts/{vhost_directory(vhost)}/queues/{name}"
        present = set(directory.seen.listdir(place)) if directory.seen.exists(place) else set()
        for segment in segments:
            if segment.names and segment.names[0] not in present:
                reports.append(missing(f"{place}/{segment.names[0]}", segment.live))
                lost += segment.live
    return reports, lost
