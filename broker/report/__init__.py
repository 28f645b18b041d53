"""What the broker says of itself: events for the log, counters for whoever asks."""
