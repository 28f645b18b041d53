"""The disk side: the threads, and what they do for a commit: write, sync, read, convert, rescue."""
