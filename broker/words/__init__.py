"""Words shared by all: names of resources in error texts, Erlang terms."""
