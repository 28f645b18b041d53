"""What the broker says of itself: events for the log, and counters."""
