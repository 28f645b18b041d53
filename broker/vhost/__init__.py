"""A virtual host: its names, routing a run to its queues, dead letters on their way, the firehose."""
