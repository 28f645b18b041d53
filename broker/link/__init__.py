"""Links: AMQP connections that the node itself opens, to other brokers or to itself.

Owns no state. `uri` says where to, `connect` opens; `tcp` is a socket, `local` a session of this node without one.
"""
