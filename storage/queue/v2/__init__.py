"""Version 2 of a queue's files: fixed entries in index segments, small messages in a store beside them."""
