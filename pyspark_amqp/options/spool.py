"""`spoolLocation` and `spool.*`: where messages are made durable before they are acknowledged.

Owns no state. Called by the options of streams and of `mode=drain`.

    a path, file:/path, file:///path    a folder that driver and executors share
    s3:// s3a:// gs:// abfss:// az://   an object store with conditional writes

`spool.endpoint`, `spool.region` and `spool.allowHttp` are for S3 and what speaks like it. Who may use it is never an
option: each process finds that out as its provider's own tools do (AWS_*, GOOGLE_*, AZURE_* in the environment, files,
roles), so that no credentials are in plans and logs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from pyspark_amqp.options.reading import OptionReader

_S3: Final = ("s3", "s3a")
OBJECT_STORES: Final = (*_S3, "gs", "abfss", "abfs", "az")
_FILE: Final = "file"
_WITH_CONTAINER: Final = ("abfss", "abfs")  # container@account
# What begins like a URL and is none would be a path; `file:/path` is what Spark itself calls one.
_HALF_URL: Final = re.compile(
    r"(?!file:/)((s3[an]?|gs|abfss?|az|wasbs?|hdfs|https?|ftp|file):(?!//)|[a-z][a-z0-9+.-]*:/(?!/))",
    re.IGNORECASE,
)
_WHY: Final = (
    "a folder that driver and executors share, or an object store; messages are made durable there"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolPlace:
    """Where the spool is."""

    location: str
    endpoint: str | None = None
    region: str | None = None
    is_http_allowed: bool = False

    @property
    def is_object_store(self) -> bool:
        """Whether pieces are objects rather than files."""
        return self.location.partition("://")[0].lower() in OBJECT_STORES


def read_spool_place(found: OptionReader) -> SpoolPlace:
    """Read where the spool is; what is wrong is among the problems."""
    location = found.required("spoolLocation", _WHY)
    scheme = location.partition("://")[0].lower() if "://" in location else _FILE
    if _has_secret(location):
        found.problems.append(
            "option 'spoolLocation': credentials do not belong into a URL; give them to the processes, "
            "in the environment or as a role"
        )
        return SpoolPlace(location="")
    if _HALF_URL.match(location):
        # Not repeated: it may be a URL with credentials that was mistyped.
        found.problems.append("option 'spoolLocation': no path begins so; a URL has '://'")
        return SpoolPlace(location="")
    endpoint, region = found.text("spool.endpoint"), found.text("spool.region")
    is_http_allowed = found.flag("spool.allowHttp", default=False)
    if scheme not in OBJECT_STORES and scheme != _FILE:
        known = ", ".join(f"{each}://" for each in OBJECT_STORES)
        found.refuse("spoolLocation", location, f"neither a path nor one of {known}, file://")
    elif location.lower().startswith("file://") and location[len("file://") :][:1] != "/":
        found.refuse("spoolLocation", location, "no file:///path")
    elif scheme != _FILE and not urlsplit(location).netloc:
        found.refuse("spoolLocation", location, f"no {scheme}://bucket/prefix")
    if scheme not in _S3:
        for name in ("spool.endpoint", "spool.region", "spool.allowHttp"):
            if name in found:
                found.problems.append(f"option '{name}' is for a spoolLocation on S3 (s3://)")
    if endpoint is not None and set(endpoint) & set("@?#"):
        found.problems.append("option 'spool.endpoint': credentials do not belong into a URL")
    elif endpoint is not None and not is_http_allowed and not endpoint.startswith("https://"):
        found.refuse(
            "spool.endpoint", endpoint, "no https:// URL; spool.allowHttp=true allows http://"
        )
    return SpoolPlace(
        location=location, endpoint=endpoint, region=region, is_http_allowed=is_http_allowed
    )


def _has_secret(location: str) -> bool:
    """Whether a URL has a password, a signature, or what may be either."""
    if "://" not in location:
        return False
    try:
        parts = urlsplit(location)
    except ValueError:
        return True
    scheme = parts.scheme.lower()
    may_have_user = scheme in _WITH_CONTAINER
    user = parts.netloc.rpartition("@")[0]
    return (
        ":" in user
        or bool(user and not may_have_user)
        or bool(parts.query)
        or bool(parts.fragment and scheme != _FILE)
        or "@" in parts.path
    )
