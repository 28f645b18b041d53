"""The disk side: the threads, and what they do: apply commits, sync, read, convert, compact, rescue."""
