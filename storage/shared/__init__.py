"""The store that a virtual host's queues share.

One copy of a message for any fan-out, in segments, with references and compaction.
"""
