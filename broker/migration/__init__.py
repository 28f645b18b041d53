"""Classic queues that become quorum queues while clients use them: messages, bindings, consumers and publishers stay.

`mover` takes what a queue has to another one, `migration` is one queue's way from the first message to the last,
`migrations` are those of a node, and survive its kills. Loaded when one is asked for, or was under way.
"""
