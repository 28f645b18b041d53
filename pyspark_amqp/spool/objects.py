"""A spool's files as objects: S3 and what speaks like it, Google Cloud Storage, Azure.

State: the client of one bucket and prefix. Not pickled: who needs it on another machine makes it there, with the
credentials of that machine (the environment, files or role that each provider's own tools use).

`create` is a conditional write (`If-None-Match: *` on S3): of several writers one wins. An answer that is lost, or that
says "conflict" or "busy", does not say whether the object is there, and a request that the client repeated by itself
may be told that its own object is in the way. All that is OutcomeUnknown or "taken", and settled by reading
(`publish`).

Invariants: what a text says of a failure has no credentials in it; an object is read by one request, into a local
file, never into memory.

Source: obstore (Apache Arrow's object_store).
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark_amqp.spool.store import Entry, FileGone, OutcomeUnknown, SpoolError

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Client

MISSING: Final = (
    "a spool on object storage needs obstore, on the driver and on the executors: "
    "pip install 'pyspark-amqp[spark-cloud]'"
)
_LISTED_AT_ONCE: Final = 1000
_DELETED_AT_ONCE: Final = 1000  # what S3 removes in one request
_TEXT_MAX: Final = 300
_CONNECT_TIMEOUT: Final = timedelta(seconds=10)
# For a whole request. An object that is sent has more time, as if the link were so slow; one that is read may take what
# it takes, as long as something comes.
_TIMEOUT: Final = timedelta(minutes=15)
_SLOWEST_BYTES_S: Final = 64 << 10
_LONGEST: Final = timedelta(days=1)
_SILENCE: Final = timedelta(minutes=2)
_SCRATCH: Final = "pyspark_amqp-"
# What is older was left by a task that was killed.
_SCRATCH_AGE_S: Final = 86400.0
_RETRY: Final = {"max_retries": 8, "retry_timeout": timedelta(seconds=120)}


class ObjectStore:
    """A bucket, below a prefix."""

    is_path = False

    def __init__(
        self,
        url: str,
        client: Client,
        slower: Callable[[timedelta], Client] | None = None,
    ) -> None:
        """`slower` makes a client whose requests may take so long; without it all take the client's own time."""
        self._url = url.rstrip("/")
        self._client = client
        self._slower = slower
        self._has_swept = False
        self._reading = client if slower is None else slower(_LONGEST)

    def __str__(self) -> str:
        return self._url

    @contextlib.contextmanager
    def scratch(self, key: str) -> Iterator[Path]:
        """See `Store`."""
        if not self._has_swept:
            self._has_swept = True
            _sweep(_SCRATCH_AGE_S)
        with tempfile.TemporaryDirectory(prefix=_SCRATCH) as folder:
            yield Path(folder) / key.rpartition("/")[2]

    def create(self, key: str, source: Path) -> bool:
        """See `Store`."""
        import obstore  # noqa: PLC0415 - an extra
        from obstore.exceptions import (  # noqa: PLC0415 - an extra
            AlreadyExistsError,
            BaseError,
            PreconditionError,
        )

        try:
            client = self._sending(source.stat().st_size)
            obstore.put(client, key, source, mode="create", use_multipart=False)
        except (AlreadyExistsError, PreconditionError):
            return False
        except (BaseError, OSError) as error:
            raise OutcomeUnknown(self._failed(key, "create", error)) from error
        return True

    def put(self, key: str, content: bytes, *, is_durable: bool = True) -> None:
        """See `Store`. Objects are durable whether they need to be or not."""
        import obstore  # noqa: PLC0415 - an extra

        del is_durable
        try:
            with self._telling(key, "put"):
                obstore.put(self._client, key, content, use_multipart=False)
        except FileNotFoundError as error:  # there is no such bucket
            raise SpoolError(self._failed(key, "put", error)) from error

    def get(self, key: str) -> bytes | None:
        """See `Store`."""
        import obstore  # noqa: PLC0415 - an extra

        with self._telling(key, "get"), contextlib.suppress(FileNotFoundError):
            return bytes(obstore.get(self._client, key).bytes())
        return None

    def head(self, key: str) -> Entry | None:
        """See `Store`."""
        import obstore  # noqa: PLC0415 - an extra

        if key.endswith("/"):
            return None  # there are no folders
        with self._telling(key, "head"), contextlib.suppress(FileNotFoundError):
            return _entry(obstore.head(self._client, key))
        return None

    def list(self, prefix: str) -> Iterator[Entry]:
        """See `Store`."""
        import obstore  # noqa: PLC0415 - an extra

        # The client's own prefixes are whole parts.
        within = prefix.rpartition("/")[0]
        found: list[Entry] = []
        with self._telling(prefix, "list"):
            for chunk in obstore.list(self._client, within or None, chunk_size=_LISTED_AT_ONCE):
                found += [_entry(each) for each in chunk]
        return iter(sorted(each for each in found if each.key.startswith(prefix)))

    def delete(self, keys: Iterable[str]) -> None:
        """See `Store`."""
        import obstore  # noqa: PLC0415 - an extra

        keys = list(keys)
        for start in range(0, len(keys), _DELETED_AT_ONCE):
            some = keys[start : start + _DELETED_AT_ONCE]
            with self._telling(some[0], "delete"), contextlib.suppress(FileNotFoundError):
                obstore.delete(self._client, some)

    @contextlib.contextmanager
    def open(self, key: str) -> Iterator[Path]:
        """See `Store`."""
        import obstore  # noqa: PLC0415 - an extra

        with self.scratch(key) as path:
            try:
                with self._telling(key, "open"), path.open("wb") as file:
                    file.writelines(obstore.get(self._reading, key).stream())
            except FileNotFoundError as error:
                raise FileGone(f"{self}/{key}: is not there") from error
            yield path

    def tidy(self, prefix: str, age_s: float) -> int:
        """See `Store`. A writer that is killed leaves nothing here, but a file on its own disk (`_sweep`)."""
        del prefix, age_s
        return 0

    def _sending(self, size: int) -> Client:
        longer = timedelta(seconds=size // _SLOWEST_BYTES_S)
        return self._slower(_TIMEOUT + longer) if self._slower and longer else self._client

    @contextlib.contextmanager
    def _telling(self, key: str, what: str) -> Iterator[None]:
        """Raise SpoolError in place of the client's errors, but for a missing file's."""
        from obstore.exceptions import BaseError  # noqa: PLC0415 - an extra

        try:
            yield
        except FileNotFoundError:
            raise
        except (BaseError, OSError) as error:
            raise SpoolError(self._failed(key, what, error)) from error

    def _failed(self, key: str, what: str, error: Exception) -> str:
        # The client's texts go on with what they are made of, down to the last request.
        reason = str(error).partition("\n\nDebug source")[0].strip().replace("\n", " ")
        return f"{self}/{key}: {what} failed ({reason[:_TEXT_MAX] or type(error).__name__})"


def open_objects(
    url: str,
    *,
    endpoint: str | None = None,
    region: str | None = None,
    is_http_allowed: bool = False,
) -> ObjectStore:
    """Return the store at a URL; nothing is asked of it yet. Raises: SpoolError."""
    try:
        from obstore.store import from_url  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise SpoolError(MISSING) from error
    wanted = {"endpoint": endpoint, "region": region}
    config: Any = {name: value for name, value in wanted.items() if value is not None}
    retry: Any = _RETRY

    def client(timeout: timedelta) -> Client:
        options: Any = {
            "allow_http": is_http_allowed,
            "connect_timeout": _CONNECT_TIMEOUT,
            "read_timeout": _SILENCE,
            "timeout": timeout,
        }
        return from_url(url, config=config or None, client_options=options, retry_config=retry)

    try:
        return ObjectStore(url, client(_TIMEOUT), client)
    except Exception as error:  # the client raises whatever its parts do
        reason = str(error).partition("\n\nDebug source")[0].strip()
        raise SpoolError(f"{url}: cannot be used ({reason[:_TEXT_MAX]})") from error


def _sweep(age_s: float) -> None:
    """Remove what killed tasks of this machine left on its disk. By age: another task may be writing."""
    now = time.time()
    for left in Path(tempfile.gettempdir()).glob(f"{_SCRATCH}*"):
        with contextlib.suppress(OSError):  # its task has ended meanwhile
            newest = max(path.stat().st_mtime for path in (left, *left.iterdir()))
            if now - newest >= age_s:
                shutil.rmtree(left, ignore_errors=True)


def _entry(found: Mapping[str, Any]) -> Entry:
    return Entry(found["path"], found["size"], found["last_modified"].timestamp())
