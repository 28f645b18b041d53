"""rabbitmq.conf, the environment and the command line, turned into one frozen NodeConfig.

`schema` declares every key once; `load.load` reads, checks and reports all errors together. Imports the
standard library only. In the server only `broker.__main__` and `broker.node` import it, and `offline`.
"""
