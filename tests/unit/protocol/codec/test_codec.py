from __future__ import annotations

import os
import subprocess
import sys

from burrowmq.protocol import codec


def chosen(**environment: str) -> str:
    program = "from burrowmq.protocol import codec; print(codec.NAME, codec.Message.__module__)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_the_interpreted_codec_can_be_forced() -> None:
    assert chosen(BURROWMQ_PURE="1") == "interpreted burrowmq.protocol.codec._message_py"


def test_the_compiled_codec_is_chosen_when_it_is_there() -> None:
    assert chosen(BURROWMQ_PURE="") in (
        "compiled burrowmq.protocol.codec._codec_c",
        "interpreted burrowmq.protocol.codec._message_py",
    )


def test_every_name_is_handed_on() -> None:
    assert all(hasattr(codec, name) for name in codec.__all__)
