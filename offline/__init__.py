"""burrowmq-store: work on a data directory while no node uses it."""
