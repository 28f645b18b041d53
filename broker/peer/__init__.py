"""Who is at the other end: what a session may ask of its socket, TLS, certificates."""
