"""The disk side: the threads, and what they do for a batch: write, sync, read, convert, rescue."""
