"""Messages and definitions on disk: segments, indexes, the group commit and recovery.

Knows ids, sizes and opaque payloads; never a routing key or a consumer. Imports the standard library only.
"""
