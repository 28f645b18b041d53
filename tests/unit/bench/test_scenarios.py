"""What scenarios read out of other programs' output, and the figures' references."""

import pytest

from bench.peers import PEERS
from bench.scenarios import FIGURES, SCENARIOS
from bench.scenarios.base import who_was_the_limit
from bench.scenarios.footprint import stall_quantile_s
from bench.scenarios.headline import queue_columns


def test_every_figure_refers_to_a_scenario_and_to_peers_that_run_it() -> None:
    by_key = {each.key: each for each in SCENARIOS}
    for figure in FIGURES:
        assert figure.peer in by_key[figure.scenario].peers
        assert figure.relative_to in {None, *PEERS}


def test_queue_columns_are_numbers_of_the_named_queue() -> None:
    output = "name\tmemory\tmessages\tmessages_ram\tmessage_bytes_ram\nlazy\t15000\t7\t0\t0\n"
    assert queue_columns(output, "lazy")["memory"] == 15000
    assert queue_columns(output, "other") == {}


def test_stall_quantile_is_the_bucket_that_holds_it() -> None:
    page = "\n".join(
        f'burrowmq_loop_stall_seconds_bucket{{le="{edge}"}} {count}'
        for edge, count in (("0.01", 9990), ("0.05", 9995), ("+Inf", 10000))
    )
    assert stall_quantile_s(page, 0.999) == 0.01
    assert stall_quantile_s(page, 0.9994) == 0.05
    assert stall_quantile_s("nothing 1", 0.999) is None


@pytest.mark.parametrize(
    ("client_s", "broker_s", "all_s", "who"),
    [(0.9, 0.5, 0.6, "client"), (0.5, 0.9, 0.9, "broker"), (0.2, 0.3, 0.4, "neither")],
)
def test_the_saturated_side_is_the_limit(
    client_s: float, broker_s: float, all_s: float, who: str
) -> None:
    assert who_was_the_limit(1.0, client_s, broker_s, all_s).startswith(who)
