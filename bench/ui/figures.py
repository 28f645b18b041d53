"""The figures of docs/management-ui.md: five tasks beside RabbitMQ's UI, weight and first view, ten open pages.

Owns no state; each function takes what it needs and returns rows. CPU is that of the node's process alone, without the
browser's. Called by `python -m bench.ui`.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from bench.amqp_line import Line
from bench.many_queues import cpu_ns
from bench.peers import PEERS, Node, NodeFailed, Setting
from bench.peers.base import free_ports
from bench.ui.browser import WIDE, log_in
from bench.ui.hands import Hands
from bench.ui.tasks import TASKS, Task
from bench.ui.world import EXCHANGE, FLOODED, HELD, QUEUES, World

WEIGHT_KB, FIRST_VIEW_MS, OPEN_PERCENT, LIST_MS = 80.0, 300.0, 2.0, 200.0
MANY_QUEUES, GOES = 100_000, 7
VIEWS = 11
WARM_VIEWS = 3
WATCH_S = 30.0
SETTLE_S = 12.0
# What ten people have open.
OPEN = (
    "overview", "overview?range=3600", "queues", "queues?name=orders", f"queues/%2F/{HELD}", f"exchanges/%2F/{EXCHANGE}",
    "connections", "channels", "policies", "node",
)  # fmt: skip
# With very many queues: the address, and what stands there.
LISTS = {
    "queues": "main tbody tr:nth-child(100)",
    "queues?sort=messages_ready&desc=1": "main tbody tr:nth-child(100)",
    "queues?name=777": "main tbody tr:nth-child(50)",
    "queues?name=7.*9%24&regex=1": "main tbody tr:nth-child(100)",
    "queues?page=500": "main tbody tr:nth-child(100)",
    f"queues/%2F/{HELD}": "main .large b",
    "exchanges": "main tbody tr", "connections": "main tbody tr", "channels": "main tbody tr", "consumers": "main tbody tr",
    "policies": "main tbody tr",
}  # fmt: skip
# Set before the page runs: when what somebody came for was there, counted from the start of the navigation.
WATCH_FOR_FIRST = """wanted => {
  const look = () => {
    if (window.shownAfter === undefined && document.querySelector(wanted)) {
      requestAnimationFrame(() => { window.shownAfter ??= performance.now(); });
    }
  };
  new MutationObserver(look).observe(document, {childList: true, subtree: true});
}"""
# Goes to an address and says how long it took until what somebody came for was painted.
GO_TO = """([hash, wanted]) => new Promise((shown, failed) => {
  const began = performance.now();
  setTimeout(() => failed(new Error(`${hash}: no ${wanted}`)), 20000);
  const observer = new MutationObserver(() => {
    if (!document.querySelector(wanted)) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => shown(performance.now() - began)));
  });
  observer.observe(document.getElementById("app"), {childList: true, subtree: true});
  location.hash = hash;
})"""
WEIGHT = """() => {
  const all = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")];
  const sum = (of) => all.filter(of).reduce((total, entry) => total + entry.encodedBodySize, 0);
  return [sum((entry) => !entry.name.includes("/api/")), sum((entry) => entry.name.includes("/api/")), all.length];
}"""
SHOWN = {"burrowmq": "main .figures b", "rabbitmq": "#main .box"}


class Started(NamedTuple):
    """A node with the world on it."""

    node: Node
    world: World


def started(peer: str, scratch: Path) -> Started:
    """A node of one product with its management UI, and the world."""
    node = PEERS[peer].node(scratch / peer, Setting())
    if peer == "rabbitmq":
        (port,) = free_ports(1)
        (node.launch.directory / "plugins").write_text("[rabbitmq_management].\n")
        with (node.launch.directory / "rabbitmq.conf").open("a") as file:
            file.write(f"management.tcp.ip = 127.0.0.1\nmanagement.tcp.port = {port}\n")
    else:
        key = "management.tcp.port="
        port = int(next(each for each in node.launch.command if each.startswith(key))[len(key) :])
    node.start()
    world = World(node.port, port)
    try:
        world.fill()
    except BaseException:
        print(node.log_path.read_text(errors="replace")[-3000:], file=sys.stderr)
        world.close()
        node.stop()
        raise
    return Started(node, world)


def tasks(browser: Any, peer: str, world: World) -> Iterator[tuple[str, Hands | str]]:
    """Each task and what it took, or why it is not to be had there."""
    for title, ours, theirs in TASKS:
        task: Task | str = ours if peer == "burrowmq" else theirs
        if isinstance(task, str):
            yield title, task
            continue
        context = browser.new_context(viewport=WIDE)
        page = context.new_page()
        log_in(page, world.api)
        page.locator(SHOWN[peer]).first.wait_for()
        page.evaluate("document.activeElement.blur()")
        hands = Hands(page)
        try:
            task(hands)
            yield title, hands
        except Exception as error:
            page.screenshot(path=f"build/bench-ui-{peer}.png")
            raise NodeFailed(f"{peer}: {title}: {error}") from error
        finally:
            context.close()


class Views(NamedTuple):
    """What a browser that has nothing yet but the login takes to show a first page; and the same page once more."""

    times_ms: list[float]
    again_ms: list[float]
    weight: float
    requests: int
    node_ms: float
    """Of the node's CPU, the median: what the machine does beside it does not count."""


def first_view(browser: Any, peer: str, started: Started) -> Views:
    """Look at the first page with fresh browsers."""
    world = started.world
    context = browser.new_context(viewport=WIDE)
    page = context.new_page()
    log_in(page, world.api)
    page.locator(SHOWN[peer]).first.wait_for()
    state = context.storage_state()
    context.close()
    times, again, spent, weight, requests = [], [], [], 0.0, 0
    for _ in range(VIEWS):
        context = browser.new_context(viewport=WIDE, storage_state=state)
        before = cpu_ns(started.node.pid)
        page = context.new_page()
        times.append(_shown_after(page, peer, world))
        spent.append((cpu_ns(started.node.pid) - before) / 1e6)
        weight, _, requests = page.evaluate(WEIGHT)
        page.close()
        again.append(_shown_after(context.new_page(), peer, world))
        context.close()
    kept = sorted(times[WARM_VIEWS:]), sorted(again[WARM_VIEWS:])
    return Views(*kept, weight, requests, middle(spent[WARM_VIEWS:]))


def _shown_after(page: Any, peer: str, world: World) -> float:
    page.add_init_script(f"({WATCH_FOR_FIRST})({SHOWN[peer]!r})")
    page.goto(world.api)
    page.locator(SHOWN[peer]).first.wait_for()
    page.wait_for_timeout(300)
    return float(page.evaluate("window.shownAfter"))


def weights(browser: Any, world: World) -> list[tuple[str, float, float]]:
    """Each page as somebody's first: bytes of its files, and of the answers of the API."""
    context = browser.new_context(viewport=WIDE)
    page = context.new_page()
    log_in(page, world.api)
    page.locator("main .figures").first.wait_for()
    state = context.storage_state()
    context.close()
    rows = []
    for address in (*OPEN, "admin", compare_address(HELD, FLOODED)):
        context = browser.new_context(viewport=WIDE, storage_state=state)
        page = context.new_page()
        page.goto(f"{world.api}#/{address}")
        page.locator("main :is(table, .figures)").first.wait_for()
        page.wait_for_timeout(500)
        files, answers, _ = page.evaluate(WEIGHT)
        rows.append((address.partition("?")[0], files, answers))
        context.close()
    return rows


def open_pages(browser: Any, started: Started) -> tuple[float, float, float]:
    """Percent of a core: the node alone, and with ten pages open in front; and what they asked in a minute."""
    time.sleep(SETTLE_S)
    alone = _percent(started.node.pid)
    context = browser.new_context(viewport=WIDE)
    page = context.new_page()
    log_in(page, started.world.api)
    page.goto(f"{started.world.api}#/{OPEN[0]}")
    for address in OPEN[1:]:
        context.new_page().goto(f"{started.world.api}#/{address}")
    page.wait_for_timeout(SETTLE_S * 1000)
    hidden = [each.evaluate("document.hidden") for each in context.pages]
    if any(hidden):
        raise NodeFailed("a page that is hidden asks nothing: nothing was measured")
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    watched = _percent(started.node.pid, lambda: page.wait_for_timeout(WATCH_S * 1000))
    context.close()
    return alone, watched, len(asked) * 60 / WATCH_S


def list_pages(browser: Any, started: Started) -> Iterator[tuple[str, float]]:
    """Each list page with very many queues behind it, gone to from the page of the node: milliseconds until it is painted."""
    line = Line(started.node.port)
    line.declare((f"q-{number:06}" for number in range(MANY_QUEUES)), durable=True)
    line.close()
    page = browser.new_context(viewport=WIDE).new_page()
    log_in(page, started.world.api)
    for address, wanted in {"overview": "main .standing", **LISTS}.items():
        times = []
        for _ in range(GOES):
            page.evaluate(GO_TO, ["#/node", "main meter"])
            times.append(page.evaluate(GO_TO, [f"#/{address}", wanted]))
        yield address, middle(times)
    page.context.close()


def _percent(pid: int, wait: Any = lambda: time.sleep(WATCH_S)) -> float:
    before, began = cpu_ns(pid), time.monotonic()
    wait()
    return (cpu_ns(pid) - before) / (time.monotonic() - began) / 1e7


def compare_address(*names: str) -> str:
    """The page that compares queues."""
    return f"queues/compare?pinned={quote(json.dumps([['/', name] for name in names]))}"


def markdown_of_tasks(ours: dict[str, Hands | str], theirs: dict[str, Hands | str]) -> str:
    """The first table."""
    lines = [
        "| task | BurrowMQ: keys | mouse | s | RabbitMQ: keys | mouse | s |",
        "|---|---|---|---|---|---|---|",
    ]
    for title, hands in ours.items():
        lines.append(f"| {title} | {_cells(hands)} | {_cells(theirs.get(title, 'not measured'))} |")
    return "\n".join(lines)


def _cells(hands: Hands | str) -> str:
    if isinstance(hands, str):
        return f"{hands} | |"
    return f"{hands.keys} | {hands.clicks} | {hands.seconds:.1f}"


def markdown_of_figures(rows: list[tuple[str, str, float, float | None, str]]) -> str:
    """The second: what, where, measured, limit, unit."""
    lines = ["| figure | of | measured | limit |", "|---|---|---|---|"]
    for title, peer, value, limit, unit in rows:
        missed = " **missed**" if limit is not None and value > limit else ""
        text = "" if limit is None else f"{limit:,.0f} {unit}"
        lines.append(f"| {title} | {peer} | {value:,.1f} {unit}{missed} | {text} |")
    return "\n".join(lines)


def middle(times: list[float]) -> float:
    """The median."""
    return statistics.median(times)


__all__ = ["QUEUES", "first_view", "list_pages", "open_pages", "started", "tasks", "weights"]
