"""The classic queue and its parts: order, consumers, limits, expiry, dead letters, settings."""
