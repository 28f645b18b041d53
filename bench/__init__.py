"""The benchmark: brokers side by side on one machine, with figures that can be compared.

`python -m bench run` starts private nodes of every peer that is installed (BurrowMQ compiled and interpreted, RabbitMQ,
LavinMQ), drives them with the native generator of `generator/` and with RabbitMQ PerfTest, and writes JSON and a table.
`docs/benchmarks.md` says what is measured and how to read it.

Layout: `procfs` reads CPU and memory of processes, `native` and `perftest` are the two load generators, `peers/` starts
and stops nodes, `scenarios/` is one module per kind of measurement, `runner` interleaves them in rounds, `report` makes
medians, ratios and verdicts. Nothing here is imported by the broker and nothing here imports it.
"""
