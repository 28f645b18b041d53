"""HTTP API, web UI and Prometheus endpoint: the only place that makes JSON or HTML."""
