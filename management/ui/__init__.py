"""The management UI: its files, and how they are served."""
