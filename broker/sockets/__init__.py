"""Sockets.

Who listens, who is still on the way in, octets in and out, back-pressure. The only room that knows asyncio's
transports.
"""
