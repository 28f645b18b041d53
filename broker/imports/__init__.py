"""Moving in: messages of another broker's queues into queues of this node, each once, over stops of either side.

`job` is one move of many queues, `move` what is done with one, `journal` what is known of it after a stop,
`recognise` how messages that come again are told from new ones. Owns no state. Nothing of it is loaded before
somebody asks for a move.
"""
