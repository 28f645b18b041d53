"""Every scenario of the benchmark, in the order of the result table.

A scenario runs one measurement on one peer and returns named values; a `Figure` says which value of which scenario has to reach
what. Called by `runner` and `report`.
"""

from bench.scenarios import (
    backpressure,
    durability,
    footprint,
    headline,
    load,
    matrix,
    perftest,
    restart,
    scrubbing,
)
from bench.scenarios.base import Figure, Outcome, Scenario

SCENARIOS: tuple[Scenario, ...] = (
    *load.SCENARIOS,
    *matrix.SCENARIOS,
    *perftest.SCENARIOS,
    *headline.SCENARIOS,
    *durability.SCENARIOS,
    *scrubbing.SCENARIOS,
    *restart.SCENARIOS,
    *footprint.SCENARIOS,
    *backpressure.SCENARIOS,
)
FIGURES: tuple[Figure, ...] = (
    *load.FIGURES,
    *matrix.FIGURES,
    *perftest.FIGURES,
    *headline.FIGURES,
    *durability.FIGURES,
    *scrubbing.FIGURES,
    *restart.FIGURES,
    *footprint.FIGURES,
    *backpressure.FIGURES,
)

__all__ = ["FIGURES", "SCENARIOS", "Figure", "Outcome", "Scenario"]
