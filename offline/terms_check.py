"""The terms of a clean stop under `burrowmq-store check`: whether they are whole, and the index files that they name.

A file that is not there has no checksum that could fail, and a start that finds an index file missing keeps the rest:
only the terms know that there was one, and how many messages it had entries of. After another stop nobody knows. A
missing file with bodies is told by those who look for them (`queue_check`, `segment_check`). A file that is there may
be cut off: which of its places are live a start believes the terms. State owned: none.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from burrowmq.offline.directory import StoreDirectory
from burrowmq.offline.report import FileReport, missing
from burrowmq.storage.directory.clean_stop import SegmentFiles, files_in
from burrowmq.storage.directory.terms import TERMS_FILE, read_terms
from burrowmq.storage.names import vhost_directory


@dataclass(slots=True)
class TermsCheck:
    """A report of damaged terms, one of each missing file, how many messages are lost by those, and what they say.

    `said` has the segments of each queue's directory, none where a start does not go by the terms.
    """

    reports: list[FileReport] = field(default_factory=list)
    lost: int = 0
    said: dict[str, dict[int, SegmentFiles]] = field(default_factory=dict)


def check_terms(directory: StoreDirectory) -> TermsCheck:
    """Look at the terms, and for the index files."""
    found = TermsCheck()
    if not directory.is_clean:
        return found
    path, seen = f"{directory.path}/{TERMS_FILE}", directory.filesystem
    try:
        parts = read_terms(seen, directory.path)
    except OSError as error:
        problem = f"cannot be read: {error.strerror or error}"
        return TermsCheck([FileReport(path, problems=[problem])])
    if parts is None:
        size = seen.file_size(path) if seen.exists(path) else 0
        problem = "not what the clean stop wrote: a start looks at every file instead"
        return TermsCheck([FileReport(path, size, problems=[problem])])
    for vhost, name, segments in files_in(parts):
        place = f"{directory.path}/vhosts/{vhost_directory(vhost)}/queues/{name}"
        present = set(directory.seen.listdir(place)) if directory.seen.exists(place) else set()
        found.said[place] = {segment.number: segment for segment in segments}
        for segment in segments:
            if segment.names and segment.names[0] not in present:
                found.reports.append(missing(f"{place}/{segment.names[0]}", segment.live))
                found.lost += segment.live
    return found
