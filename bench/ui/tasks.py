"""Five things that somebody comes for, in BurrowMQ's UI and in RabbitMQ's, from the overview on.

Owns no state. Each task begins logged in, at the overview, with the hands on the keyboard, and ends when the answer is on
the screen. Called by `bench.ui.figures`.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.ui.hands import Hands
from bench.ui.world import DROPPING, FLOODER, HELD, HOLDER, UNCONSUMED

Task = Callable[[Hands], None]


def _go(hands: Hands, typed: str, found: str) -> None:
    """Ctrl K, a few letters, Enter."""
    hands.press("Control+k")
    hands.sees("dialog input:focus")
    hands.type(typed)
    hands.sees(f'[role=option][aria-selected=true]:has-text("{found}")')
    hands.press("Enter")


def unconsumed(hands: Hands) -> None:
    hands.sees(
        f'.standing div:has(h2:text("without consumers")) tr:first-child:has-text("{UNCONSUMED}")'
    )
    _go(hands, "invo", UNCONSUMED)
    hands.sees('h2:text("Why it is so")')


def dropping(hands: Hands) -> None:
    _go(hands, "clic", DROPPING)
    hands.sees('tr:has-text("Max length"):has-text("5,000"):has-text("9,000")')


def _first_row(hands: Hands, wanted: str) -> None:
    """From the filter to the first row, which is the one."""
    hands.sees(f"tbody tr:first-child {wanted}")
    hands.press("/", "ArrowDown")
    hands.sees(f"tbody tr:first-child {wanted}:focus")
    hands.press("Enter")


def lowering(hands: Hands) -> None:
    _go(hands, "lim", "limits")
    _first_row(hands, 'button:text("Edit")')
    hands.sees("details[open] input[name=x-max-length]")
    hands.tab_to("details[open] input[name=x-max-length]")
    hands.type("1000")
    hands.sees(
        'text="2,000 ready messages, the oldest of each queue, would be dropped by its maximum length."'
    )


def holding(hands: Hands) -> None:
    _go(hands, "parc", HELD)
    hands.sees(f'table:has(caption:text("Who holds")) tr:has-text("{HOLDER}"):has-text("250")')


def closing(hands: Hands) -> None:
    _go(hands, "send", "Connections: who sends most")
    _first_row(hands, f'a:has-text("{FLOODER}")')
    hands.choose('button.danger:text("Close…")')
    hands.sees("dialog input:focus")
    hands.press("Enter")
    hands.sees('text="It has been closed; this is what was last known of it."')


def _tab(hands: Hands, name: str) -> None:
    hands.choose(f'#tabs a[href="#/{name}"]')
    hands.sees(f'h1:has-text("{name.capitalize()}")')


def _queue(hands: Hands, typed: str, name: str) -> None:
    _tab(hands, "queues")
    hands.sees("#queues-name")
    if not hands.tab_to("#queues-name"):
        hands.click("#queues-name")
    hands.type(typed)
    hands.press("Enter")
    hands.sees(f'td a:text-is("{name}") >> nth=0')
    hands.sees("table.list tbody tr:nth-child(1)")
    hands.choose(f'td a[href*="{name}"]')
    hands.sees(f'h1:has-text("{name}")')


def their_unconsumed(hands: Hands) -> None:
    _tab(hands, "queues")
    hands.choose("span.popup-options-link")
    hands.sees('input[name="queues-consumers"]')
    hands.click('input[name="queues-consumers"]')
    hands.click(".form-popup-options span")
    for _ in range(2):  # the first time the smallest come first
        hands.choose('a.sort[sort="messages_ready"]')
        hands.sees("table.list tbody tr:nth-child(1)")
    hands.sees(f'tbody tr:nth-child(2):has-text("{UNCONSUMED}")')
    hands.choose(f'td a[href*="{UNCONSUMED}"]')
    hands.sees(f'h1:has-text("{UNCONSUMED}")')


def their_dropping(hands: Hands) -> None:
    _queue(hands, "clic", DROPPING)
    hands.sees('th:has-text("Effective policy definition")')


def their_holding(hands: Hands) -> None:
    _queue(hands, "parc", HELD)
    hands.choose('h2:has-text("Consumers")')
    hands.choose('a[href*="#/channels/"]')
    hands.sees('tr:has-text("unacknowledged"):has-text("250")')


def their_closing(hands: Hands) -> None:
    _tab(hands, "connections")
    hands.sees("a.sort[sort='recv_oct_details.rate']")
    for _ in range(2):
        hands.choose("a.sort[sort='recv_oct_details.rate']")
        hands.sees("table.list tbody tr:nth-child(1)")
    hands.choose('td a[href*="#/connections/"]')
    hands.sees(f'text="{FLOODER}"')
    hands.choose('h2:has-text("Close this connection")')
    hands.page.on("dialog", lambda dialog: dialog.accept())
    hands.choose('input[value="Force Close"]')
    hands.press()  # and Enter in the browser's own question
    hands.keys += 1
    hands.sees('h1:has-text("Connections")')


TASKS: tuple[tuple[str, Task, Task | str], ...] = (
    ("the deepest queue without consumers", unconsumed, their_unconsumed),
    ("why does this queue drop messages", dropping, their_dropping),
    (
        "what would lowering max-length lose",
        lowering,
        "not shown: to be added up by hand from the depths of the queues that match",
    ),
    ("who holds unacked messages", holding, their_holding),
    ("close the connection that floods", closing, their_closing),
)
