"""What replicated messages cost: rows without AMQP and over it, and the table."""
