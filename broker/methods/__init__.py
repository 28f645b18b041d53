"""One module per AMQP class: free functions (channel, method), one per method."""
