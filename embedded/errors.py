"""What an embedded broker refuses."""

from __future__ import annotations


class BrokerError(Exception):
    """The broker cannot start, has ended, or is asked for what it cannot do; the text says what to do."""
