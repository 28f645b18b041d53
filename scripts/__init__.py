"""Commands of the Makefile that are too long for it. Not installed."""
