"""/api/burrowmq/backup: have the store backed up, and see how far that is.

Owns no state: the engine has the job. The directory is one of the node's machine, so only administrators and the
control socket may name one. The request is answered when the backup is under way; `GET` tells the rest.
"""

from __future__ import annotations

from typing import Any

from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers.disk_threads import ask_disk
from burrowmq.management.answers.reply import Call, Route, bad_request, not_found, reply
from burrowmq.storage.types import BackupJob


def _document(job: BackupJob) -> dict[str, Any]:
    return {
        "directory": job.directory,
        "state": job.state,
        "reason": job.reason,
        "incomplete": job.is_marked and job.state == "failed",
        "queues": job.queue_count,
        "messages": job.message_count,
        "files": job.file_count,
        "files_done": job.files_done,
        "bytes": job.byte_count,
        "bytes_done": job.bytes_done,
        "bytes_linked": job.linked_bytes,
        "cut_ms": round(job.cut_ms, 3),
    }


async def start(call: Call) -> web.Response:
    """Begin a backup of everything that is staged by now."""
    directory = (await call.body()).get("directory")
    if not isinstance(directory, str) or "\0" in directory:
        raise bad_request("directory is missing")
    # The directory may be on a file system that does not answer: look in a thread, not on the loop.
    refusal = await ask_disk(commands.node.backup_refusal, call.node, directory)
    if refusal:
        raise bad_request(refusal)
    return reply(_document(commands.node.start_backup(call.node, directory)), 202)


async def look(call: Call) -> web.Response:
    """The last backup since the node started."""
    job = call.node.engine.backup
    if job is None:
        raise not_found()
    return reply(_document(job))


ROUTES = (
    Route("POST", "/api/burrowmq/backup", start, "administrator"),
    Route("GET", "/api/burrowmq/backup", look, "administrator"),
)
