"""Words that several rooms share: names of resources in error texts, Erlang terms, JSON from outside."""
