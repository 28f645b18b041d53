"""Shovels: they consume from one place and publish to another, in this node or in others, for as long as they are told.

RabbitMQ's shovel plugin. Nothing of it is imported before one is configured (`broker.node.shovels`). `rules` refuses
wrong parameters, `definition` reads right ones, `worker` does the work of one shovel, `shovels` has all of a node.

Source: RabbitMQ's rabbitmq_shovel; the answers of a live 3.10 node.
"""
