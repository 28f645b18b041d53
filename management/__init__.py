"""HTTP API, web UI and Prometheus endpoint: the only place that answers in JSON or HTML."""
