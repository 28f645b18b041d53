"""The loop side: what queues stage for the next commit, and what they can still read from memory."""
