"""The API described for programs and people, from the table of its routes."""
