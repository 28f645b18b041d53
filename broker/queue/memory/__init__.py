"""How much of a queue is in memory: by its mode, by how fast it is consumed, and when nobody wants it."""
