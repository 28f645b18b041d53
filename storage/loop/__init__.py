"""The loop side: what a queue stages for the next commit."""
