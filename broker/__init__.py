"""The server: connections, channels, exchanges, queues and the node that composes them.

One event loop owns every object in this package; methods are synchronous and run to completion.
"""
