"""Command line: `python -m bench.ui [pictures] [--peers burrowmq,rabbitmq] [--only tasks,views,open,lists]`.

Without a word: the figures, as tables; exit status 1 when a limit is missed. `pictures` makes docs/ui/*.png anew.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from bench.peers import PEERS
from bench.ui import figures, pictures
from bench.ui.browser import chromium
from bench.ui.hands import Hands

KINDS = ("tasks", "views", "open", "lists")
TITLES = {"burrowmq": "BurrowMQ", "rabbitmq": "RabbitMQ"}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _measure(peers: list[str], kinds: list[str]) -> int:
    rows: list[tuple[str, str, float, float | None, str]] = []
    done: dict[str, dict[str, Hands | str]] = {}
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="bench-ui-") as scratch, chromium() as browser:
        for peer in peers:
            _say(f"{TITLES[peer]}: a node, {figures.QUEUES} queues")
            found = figures.started(peer, Path(scratch))
            try:
                for row in _of_peer(browser, peer, found, kinds, done):
                    _say(f"  {row[0]}: {row[2]:,.1f} {row[4]}")
                    rows.append(row)
            finally:
                found.world.close()
                found.node.stop()
    if "burrowmq" in done:
        print(figures.markdown_of_tasks(done["burrowmq"], done.get("rabbitmq", {})), end="\n\n")
    print(figures.markdown_of_figures(rows))
    print(
        f"\nThe machine's load was {load:.1f} at the start and {os.getloadavg()[0]:.1f} at the end."
    )
    return 1 if any(limit is not None and value > limit for _, _, value, limit, _ in rows) else 0


def _of_peer(browser, peer, found, kinds, done):
    is_ours, title = peer == "burrowmq", TITLES[peer]
    if "open" in kinds and is_ours:
        alone, watched, asked = figures.open_pages(browser, found)
        yield "ten open pages, requests", title, asked, None, "a minute"
        yield "the node alone", title, alone, None, "% of a core"
        yield (
            "ten open pages, beyond that",
            title,
            watched - alone,
            figures.OPEN_PERCENT,
            "% of a core",
        )
    if "views" in kinds:
        views = figures.first_view(browser, peer, found)
        times = views.times_ms
        time_limit, weight_limit = (
            (figures.FIRST_VIEW_MS, figures.WEIGHT_KB) if is_ours else (None, None)
        )
        yield f"first view, median of {len(times)}", title, figures.middle(times), time_limit, "ms"
        yield "first view, slowest", title, times[-1], None, "ms"
        yield "the same view again, median", title, figures.middle(views.again_ms), None, "ms"
        yield "first view, CPU of the node", title, views.node_ms, None, "ms"
        yield "first view, requests", title, views.requests, None, ""
        yield "first view, files", title, views.weight / 1000, weight_limit, "kB"
    if "views" in kinds and is_ours:
        page, files, _ = max(figures.weights(browser, found.world), key=lambda row: row[1])
        yield f"heaviest page ({page}), files", title, files / 1000, figures.WEIGHT_KB, "kB"
    if "tasks" in kinds:
        found.world.flood()
        found.world.await_figures()
        done[peer] = {}
        for task, hands in figures.tasks(browser, peer, found.world):
            done[peer][task] = hands
            _say(
                f"  {task}: {hands if isinstance(hands, str) else f'{hands.keys} keys, {hands.clicks} clicks'}"
            )
    if "lists" in kinds and is_ours:
        for address, shown_ms in figures.list_pages(browser, found):
            what = f"`{address}`, {figures.MANY_QUEUES:,} queues, painted"
            yield what, title, shown_ms, figures.LIST_MS, "ms"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.ui", description=__doc__)
    parser.add_argument("what", nargs="?", choices=["figures", "pictures"], default="figures")
    parser.add_argument(
        "--peers", default="burrowmq,rabbitmq", help="default: both, where RabbitMQ is installed"
    )
    parser.add_argument(
        "--only", default=",".join(KINDS), help="tasks, views, open, lists; or names of pictures"
    )
    options = parser.parse_args()
    if options.what == "pictures":
        wanted = [] if options.only == ",".join(KINDS) else options.only.split(",")
        return pictures.make(wanted)
    peers = [peer for peer in options.peers.split(",") if PEERS[peer].version() is not None]
    return _measure(peers, options.only.split(","))


if __name__ == "__main__":
    sys.exit(main())
