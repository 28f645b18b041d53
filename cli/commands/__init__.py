"""The commands of `burrowctl`, one module for each group; `cli.registry` has the table."""
