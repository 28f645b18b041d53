"""A connection as the protocol knows it.

Its states, its channels' states, the handshake, content that arrives in frames.
"""
