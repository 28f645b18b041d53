"""Somebody with a browser window, and names that try to be more than text."""

from __future__ import annotations

from typing import Any

from tests.support.broker_process import BrokerProcess

# Ends a tag, an attribute, a script and a template, and turns what follows around.
HOSTILE = "\"'><img src=x onerror=alert(1)></script><script>alert(2)</script>${alert(3)}\u202e\x07"
SHOWN = HOSTILE.replace("\u202e", "\\u202e").replace("\x07", "\\u0007")
TIMEOUT_MS = 10_000


class Looker:
    """Somebody with a browser window."""

    def __init__(self, context: Any, process: BrokerProcess) -> None:
        self.base = f"http://127.0.0.1:{process.management_port}/"
        self.context = context
        self.page = context.new_page()
        self.page.set_default_timeout(TIMEOUT_MS)
        self.complaints: list[str] = []
        self.page.on(
            "console",
            lambda said: self.complaints.append(said.text) if said.type == "error" else None,
        )
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._refuse)

    def _refuse(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def log_in(self, name: str = "guest", password: str = "guest") -> None:
        self.page.goto(self.base)
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_label("Password").fill(password)
        self.page.keyboard.press("Enter")

    def enter(self) -> Looker:
        self.log_in()
        self.page.get_by_role("navigation", name="Pages").first.wait_for()
        return self

    def go(self, address: str) -> None:
        self.page.goto(f"{self.base}#/{address}")

    def arrives(self, address: str) -> None:
        """Wait for an address; not by a function in the page, which its policy lets no browser evaluate twice."""
        self.page.wait_for_url(lambda url: url.partition("?")[0] == f"{self.base}#/{address}")

    def sees(self, text: str) -> None:
        self.page.locator("main").get_by_text(text).locator("visible=true").first.wait_for()
