"""Who gets what is ready: consumers and whose turn it is, basic.get."""
