"""Say at the end of `make setup` which of its optional modules this environment got compiled.

A missing compiler is no error: the interpreted twins pass the same tests, only slower. Called by the Makefile.
"""

from __future__ import annotations

import importlib.util

MODULES = {
    "codec": "burrowmq.protocol.codec._codec_c",
    "record packer": "burrowmq.storage.record._record_c",
    "sync of several files": "burrowmq.storage.files._sync_c",
    "return of unused memory": "burrowmq.broker.machine._pools_c",
    "writes to many sockets": "burrowmq.broker.turn._send_c",
}


def main() -> None:
    """Print one line per compiled module."""
    for part, module in MODULES.items():
        if importlib.util.find_spec(module) is None:
            print(
                f"{part}: interpreted ({module} was not built: no C compiler? then `make build`); it works, only slower"
            )
        else:
            print(f"{part}: compiled")


if __name__ == "__main__":
    main()
