"""aiohttp without its client's certificates."""

from __future__ import annotations

import os

from burrowmq.management import aio


def test_the_environment_is_as_before() -> None:
    assert aio.web.Application is not None
    assert os.environ.get("SSL_CERT_FILE") != os.devnull
