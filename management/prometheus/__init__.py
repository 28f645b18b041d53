"""The Prometheus endpoint: which metrics there are, and how they are written out."""
