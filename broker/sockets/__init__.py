"""Sockets.

Who listens, which sockets are pending, octets in and out, back-pressure. The only room that knows asyncio's
transports.
"""
