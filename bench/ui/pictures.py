"""docs/ui/*.png: every page, wide and narrow, light and dark, with 1,000 queues behind it.

Owns no state. Pictures get a palette of as many colours as are seen, and no dithering, which would cost more than it
shows.
Called by `python -m bench.ui pictures`.
"""

from __future__ import annotations

import importlib
import io
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pika

from bench.ui import figures
from bench.ui.browser import chromium, log_in
from bench.ui.world import DROPPING, EXCHANGE, FLOODED, FLOODER, HELD, HOLDER, UNCONSUMED, World
from tests.support.broker_process import BrokerProcess

TARGET = Path(__file__).resolve().parents[2] / "docs" / "ui"
SIZES = {"wide": {"width": 1280, "height": 900}, "narrow": {"width": 390, "height": 844}}
THEMES = ("light", "dark")
COLOURS = 128  # fewer lose the colours of thin lines
IMPORTED = ("invoices", "returns.eu", "returns.us", "mail.out", "mail.in")
# Charts need a past.
PAST_S = 45


def _addresses(world: World) -> dict[str, str]:
    rows = world.request("GET", "connections")
    names = {row["user_provided_name"]: quote(row["name"], safe="") for row in rows}
    return {
        "overview": "overview",
        "definitions": "overview/definitions",
        "queues": "queues?sort=messages_ready&desc=1",
        "queue": f"queues/%2F/{DROPPING}",
        "compare": figures.compare_address(HELD, FLOODED, DROPPING),
        "exchanges": "exchanges",
        "exchange": f"exchanges/%2F/{EXCHANGE}?key=click.eu.product&headers=%7B%7D",
        "connections": "connections?sort=recv_oct_details.rate&desc=1",
        "connection": f"connections/{names[FLOODER]}",
        "channels": "channels?sort=messages_unacknowledged&desc=1",
        "channel": f"channels/{names[HOLDER]}%20(1)",
        "consumers": "consumers",
        "policies": "policies",
        "users": "admin/users",
        "user": "admin/users/app",
        "vhosts": "admin/vhosts",
        "vhost": "admin/vhosts/%2F",
        "permissions": "admin/permissions",
        "parameters": "admin/parameters",
        "shovels": "admin/shovels",
        "import": "admin/import",
        "flags": "admin/flags",
        "configuration": "admin/configuration",
        "node": "node",
        "log": "node/log",
    }


def _more(world: World) -> None:
    """What the pages of an administrator show."""
    world.request("PUT", "vhosts/shop", {"description": "the web shop"})
    for name, tags in (
        ("app", "monitoring"),
        ("reporter", "management"),
        ("deploy", "policymaker"),
    ):
        world.request("PUT", f"users/{name}", {"password": "not this one", "tags": tags})
    rights = {"configure": "^(orders|returns)\\.", "write": ".*", "read": "^orders\\."}
    for vhost, user in (("%2F", "app"), ("shop", "app"), ("shop", "reporter")):
        world.request("PUT", f"permissions/{vhost}/{user}", rights)
    topic = {"exchange": EXCHANGE, "write": "^orders\\.", "read": ".*"}
    world.request("PUT", "topic-permissions/%2F/app", topic)
    world.request("PUT", "vhost-limits/shop/max-queues", {"value": 500})
    world.request("PUT", "global-parameters/owner", {"value": {"team": "shop", "pager": 4711}})
    cap = {"pattern": "^(clicks|import)", "apply-to": "queues", "definition": {"max-length": 4_000}}
    world.request("PUT", "operator-policies/%2F/cap", cap)


def _moves(world: World, other: BrokerProcess) -> object:
    """Shovels in several states, and an import from another node that is under way; who consumes there meanwhile."""
    amqp = f"amqp://127.0.0.1:{other.amqp_port}"
    connection = pika.BlockingConnection(pika.URLParameters(amqp))
    channel = connection.channel()
    for at, name in enumerate(IMPORTED):
        channel.queue_declare(name, durable=True)
        world.request("PUT", f"queues/%2F/{name}", {"durable": True})
        for number in range(2_000 * at + 500):
            persistent = pika.BasicProperties(delivery_mode=2)
            channel.basic_publish("", name, b'{"order": %d}' % number, persistent)
        channel.queue_declare(name, passive=True)
    channel.basic_consume(IMPORTED[-1], lambda *_: None)
    for name, value in {
        "to the archive": {"src-queue": DROPPING, "dest-uri": amqp, "dest-queue": "archive"},
        "to the branch": {
            "src-queue": UNCONSUMED, "dest-uri": "amqp://branch.invalid", "dest-queue": "orders",
        },
        "clicks": {
            "src-exchange": EXCHANGE, "src-exchange-key": "click.#",
            "dest-exchange": "amq.fanout", "ack-mode": "no-ack",
        },
    }.items():  # fmt: skip
        both = {"src-uri": "amqp://", "dest-uri": "amqp://", **value}
        world.request("PUT", f"parameters/shovel/%2F/{quote(name)}", {"value": both})
    queues = [{"vhost": "/", "name": name} for name in IMPORTED]
    world.request("POST", "burrowmq/import", {"uri": amqp, "queues": queues, "rate": 20})
    return channel


def _ready(page: Any, name: str) -> None:
    """Wait for what the page is about, and do what shows it."""
    page.locator("main :is(table, .figures, .log, input[type=file])").first.wait_for()
    if name == "policies":
        row = page.get_by_role("row").filter(has_text="limits")
        more = row.get_by_role("button", name="More of")
        if more.is_visible():  # where there is little room
            more.click()
        page.get_by_role("row").get_by_role("button", name="Edit").and_(
            page.locator(":visible")
        ).last.click()
        page.locator("details[open] input[name=x-max-length]").fill("1000")
        page.get_by_text("would be dropped by its maximum length").wait_for()
    page.wait_for_timeout(700)


def _shot(page: Any, target: Path) -> None:
    pillow = importlib.import_module("PIL.Image")  # nothing else needs it
    with pillow.open(io.BytesIO(page.screenshot())) as picture:
        few = picture.convert("RGB").quantize(COLOURS, dither=pillow.Dither.NONE)
        few.save(target, optimize=True)


def _of_theme(browser: Any, world: World, theme: str, size: str, wanted: list[str]) -> None:
    context = browser.new_context(viewport=SIZES[size], color_scheme=theme, reduced_motion="reduce")
    page = context.new_page()
    page.goto(world.api)
    page.locator("input[name=username]").wait_for()
    if not wanted or "login" in wanted:
        _shot(page, TARGET / f"login-{theme}-{size}.png")
    log_in(page, world.api)
    for name, address in _addresses(world).items():
        if wanted and name not in wanted:
            continue
        page.goto(f"{world.api}#/{address}")
        _ready(page, name)
        _shot(page, TARGET / f"{name}-{theme}-{size}.png")
    if not wanted or "search" in wanted:
        page.goto(f"{world.api}#/overview")
        page.keyboard.press("Control+k")
        page.keyboard.type("ord")
        page.locator("[role=option]:has-text('orders.')").first.wait_for()
        page.wait_for_timeout(400)
        _shot(page, TARGET / f"search-{theme}-{size}.png")
        page.keyboard.press("Escape")
    if not wanted or "confirm" in wanted:
        page.goto(f"{world.api}#/queues/%2F/{UNCONSUMED}")
        page.get_by_role("button", name="Purge…").click()
        page.wait_for_timeout(400)
        _shot(page, TARGET / f"confirm-{theme}-{size}.png")
    context.close()


def make(wanted: list[str]) -> int:
    """All of them, or those that are named."""
    began = time.time()
    with tempfile.TemporaryDirectory(prefix="bench-ui-") as scratch, chromium() as browser:
        found = figures.started("burrowmq", Path(scratch))
        other = BrokerProcess(Path(scratch) / "other")
        try:
            other.start()
            _more(found.world)
            consumer = _moves(found.world, other)
            found.world.flood()
            page = browser.new_page()
            log_in(page, found.world.api)
            page.goto(f"{found.world.api}#/queues/%2F/{FLOODED}")  # what is looked at has a past
            page.wait_for_timeout(PAST_S * 1000)
            for theme in THEMES:
                for size in SIZES:
                    _of_theme(browser, found.world, theme, size, wanted)
        finally:
            found.world.close()
            found.node.stop()
            other.kill()
            del consumer
    if not wanted:
        for old in TARGET.glob("*.png"):
            if old.stat().st_mtime < began:
                old.unlink()
    size = sum(path.stat().st_size for path in TARGET.glob("*.png"))
    print(f"{len(list(TARGET.glob('*.png')))} pictures, {size / 1000:,.0f} kB")
    return 0
