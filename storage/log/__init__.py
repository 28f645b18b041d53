"""The commit log: one file that a commit is written to and synced in, however many queues it touches."""
