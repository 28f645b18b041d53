"""One module per exchange type; all of them offer bind, unbind and match (see `base`)."""
