"""rabbitmq.conf, the environment and the command line, turned into one frozen NodeConfig.

`schema` declares every key once; `load.load` reads, checks and reports all errors together. Imports the
standard library only, and is imported by the two roots `broker.node.node` and `broker.__main__` only.
"""
