"""Benchmarks: brokers side by side in one interleaved run, results as JSON. Not installed."""
