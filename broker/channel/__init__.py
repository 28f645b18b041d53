"""A channel.

Delivery tags, prefetch, confirms, transactions; and `methods`, one handler for each method of the protocol.
"""
