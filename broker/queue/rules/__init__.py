"""What a queue's arguments and policies ask for.

Limits, expiry, dead letters, priorities, and changing them while it runs.
"""
