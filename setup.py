"""Builds the five optional compiled modules; everything else about the package is in pyproject.toml.

Three of them have an interpreted twin that passes the same tests. Without `_pools_c` less memory goes back to the system,
and without `_send_c` each connection's output is written by itself. So a missing compiler, a missing Cython or a failing
compilation never fails an installation: the broker then runs on the twins and says so.
"""

from __future__ import annotations

import zlib
from pathlib import Path

from setuptools import Extension, setup

SOURCES = {
    "burrowmq.protocol.codec._codec_c": "burrowmq/protocol/codec/_codec_c.pyx",
    "burrowmq.storage.record._record_c": "burrowmq/storage/record/_record_c.pyx",
    "burrowmq.storage.files._sync_c": "burrowmq/storage/files/_sync_c.pyx",
    "burrowmq.broker.machine._pools_c": "burrowmq/broker/machine/_pools_c.pyx",
    "burrowmq.broker.turn._send_c": "burrowmq/broker/turn/_send_c.pyx",
}


STAMP = "build_stamp.pxi"


def parts(source: str) -> list[str]:
    """Return what the compilation of a module reads beside its source: the stamp, and what lies in its folder."""
    return [STAMP, *sorted(map(str, Path(source).parent.glob("*.pxi")))]


def source_crc(source: str) -> int:
    """Return what a compiled module compares with its source when it is imported (build_stamp.pxi)."""
    crc = 0
    for path in (*parts(source), source):
        crc = zlib.crc32(Path(path).read_bytes(), crc)
    return crc


def compiled_modules() -> list[Extension]:
    """Return the extensions whose source is here, translated to C, or none without Cython."""
    wanted = [
        Extension(
            name,
            [source],
            depends=parts(source),
            define_macros=[("BURROWMQ_SOURCE_CRC", f"{source_crc(source)}LL")],
            extra_compile_args=["-O3", "-g0", "-fno-strict-aliasing"],
        )
        for name, source in SOURCES.items()
        if Path(source).exists()
    ]
    if not wanted:
        return []
    try:
        from Cython.Build import cythonize  # noqa: PLC0415 - a build without Cython is legal
    except ImportError:
        return []
    modules: list[Extension] = cythonize(
        wanted, language_level=3, build_dir="build/cython", include_path=["."]
    )
    for module in modules:
        module.optional = True  # cythonize drops it from what it was given
    return modules


setup(ext_modules=compiled_modules())
