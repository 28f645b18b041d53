"""The node: how everything is made from the configuration, started, watched and stopped."""
