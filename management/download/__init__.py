"""What the node hands out to be run elsewhere."""
