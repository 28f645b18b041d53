"""The programs' entry points: `burrowmq-server`, `burrowctl` and `burrowmq-store`.

Own no state. Each loads its program and runs it. Who interrupts one (^C) while it is being loaded ends it without a
traceback, with the status that shells give such an end. Called by the scripts that an installation makes. Invariant:
imports nothing of ours before it is asked to, and nothing at all that burrowctl would have to wait for.
"""

from __future__ import annotations

INTERRUPTED = 130


def server() -> int:
    """burrowmq-server; its exit status."""
    import signal  # noqa: PLC0415 - burrowctl needs none

    # Until the node listens for signals: an exception in the middle of a start may be lost in whatever runs then.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from burrowmq.broker.__main__ import main  # noqa: PLC0415 - loading is what is interrupted

    return main()


def ctl() -> int:
    """burrowctl; its exit status."""
    try:
        from burrowmq.cli.__main__ import main  # noqa: PLC0415 - loading is what is interrupted

        return main()
    except KeyboardInterrupt:
        return INTERRUPTED


def store() -> int:
    """burrowmq-store; its exit status."""
    try:
        from burrowmq.offline.__main__ import main  # noqa: PLC0415 - loading is what is interrupted

        return main()
    except KeyboardInterrupt:
        return INTERRUPTED
