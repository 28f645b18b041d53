"""One connection as the broker knows it: login, events to handlers, errors to closes, limits."""
