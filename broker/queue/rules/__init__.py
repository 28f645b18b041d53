"""What a queue's arguments and policies ask for.

Length limits, message expiry, dead letters, the lease of an unused queue; settings, and their change while the queue
has messages.
"""
