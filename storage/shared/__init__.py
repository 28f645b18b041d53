"""The store that a virtual host's queues share.

It has one copy of a message for any number of queues, in segments, with reference counts and compaction.
"""
