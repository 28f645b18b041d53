"""rabbitmq.conf, the environment and the command line, turned into one frozen NodeConfig.

`schema` declares every key once; `load.load` reads, checks and reports all errors together. Imports the
standard library only. Only `broker.__main__`, `broker.node`, `management.settings` and `offline` import it.
"""
