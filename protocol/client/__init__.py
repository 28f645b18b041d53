"""AMQP 0-9-1 as a client speaks it, without a socket: what links to other brokers and shovels are made of.

Nothing of it is imported before a link is configured.
"""
