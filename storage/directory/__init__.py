"""A data directory as a whole: start, clean stop, recovery, backup, definitions in SQLite."""
