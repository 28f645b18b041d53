"""Version 1 of a queue's files: a journal and segments of entries, small messages embedded."""
