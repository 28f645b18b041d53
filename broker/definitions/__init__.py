"""Definitions.

Restoring them at the start, importing and exporting documents, parameters, what a new virtual host gets.
"""
