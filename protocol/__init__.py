"""AMQP 0-9-1 without I/O: bytes in, events out; events in, bytes out.

Nothing here opens a socket, reads a clock or knows what a queue does. Imports the standard library, and pamqp in
`methods` only.
"""
