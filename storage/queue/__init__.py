"""One queue on disk: its segments, their entries, reading, keeping up, and conversion between the versions."""
