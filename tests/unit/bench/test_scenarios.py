"""What scenarios read out of other programs' output, and the figures' references."""

import shutil
from pathlib import Path

import pytest

from bench import native
from bench.peers import PEERS, Setting
from bench.scenarios import FIGURES, SCENARIOS, matrix
from bench.scenarios.base import who_was_the_limit
from bench.scenarios.footprint import stall_counts, stall_quantile_s
from bench.scenarios.headline import modes_table, queue_columns
from bench.scenarios.load import SHAPE, Load
from bench.stage import Stage


def test_every_figure_refers_to_a_scenario_and_to_peers_that_run_it() -> None:
    by_key = {each.key: each for each in SCENARIOS}
    for figure in FIGURES:
        assert figure.peer in by_key[figure.scenario].peers
        assert figure.relative_to in {None, *PEERS}
        assert figure.over is None or figure.peer in by_key[figure.over].peers


def test_every_row_of_the_matrix_has_its_must_beside_rabbitmq_and_interpreted() -> None:
    promised = {
        (figure.scenario, figure.peer) for figure in FIGURES if figure.relative_to == "rabbitmq"
    }
    for row in matrix.ROWS:
        assert {(row.key, "burrowmq"), (row.key, "burrowmq-pure")} <= promised
    assert len({each.key for each in SCENARIOS}) == len(SCENARIOS)


@pytest.mark.slow
@pytest.mark.needs_server
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_every_row_of_the_matrix_runs(tmp_path: Path) -> None:
    """A few messages each: what the generator sends and checks is what a broker understands."""
    node = PEERS["burrowmq"].node(tmp_path, Setting(is_tls=True))
    node.start()
    try:
        for row in matrix.ROWS:
            options = {"size": 16, **row.options, "timeout": 30}
            options["messages"] = few = 40 if options["size"] > 65_536 else 400
            if "bindings" in options:
                options["bindings"] = 100
            if options.get("producers") == 1000:
                few = options["messages"] = 1000
                options["rate"] = 1000
            port = node.launch.tls_port if options.get("tls") else node.port
            report = native.run(port, **options)
            assert report["consumed"] or report["published"] == few, row.key
            shape = {name: options[name] for name in SHAPE if options.get(name)}
            native.run(node.port, mode="delete", **shape)
    finally:
        node.stop()


def test_queue_columns_are_numbers_of_the_named_queue() -> None:
    output = "name\tmemory\tmessages\tmessages_ram\tmessage_bytes_ram\nlazy\t15000\t7\t0\t0\n"
    assert queue_columns(output, "lazy")["memory"] == 15000
    assert queue_columns(output, "other") == {}


def test_modes_and_versions_are_one_table() -> None:
    assert {
        f"headline_{mode}_v{version}" for mode in ("lazy", "default") for version in (1, 2)
    } <= {each.key for each in SCENARIOS}
    row = {
        "queue_memory": 159e3,
        "queue_messages_ram": 0,
        "queue_message_bytes_ram": 0,
        "rss_after": 70e6,
        "disk_bytes": 1.1e9,
    }
    table = modes_table({"headline_lazy_v1": row})
    assert table.splitlines()[2:] == ["| lazy | 1 | 159 KB | 0 | 0 MB | 70 MB | 1.10 GB |"]


def _page(counts: dict[str, int]) -> str:
    return "\n".join(
        f'burrowmq_loop_stall_seconds_bucket{{le="{edge}"}} {count}'
        for edge, count in counts.items()
    )


def test_stalls_before_the_measurement_do_not_count() -> None:
    before = stall_counts(_page({"0.01": 10, "0.05": 10, "+Inf": 15}))
    quiet = stall_counts(_page({"0.01": 2010, "0.05": 2010, "+Inf": 2015}))
    stalled = stall_counts(_page({"0.01": 2000, "0.05": 2010, "+Inf": 2015}))
    assert stall_quantile_s(before, quiet) == 0.01
    assert stall_quantile_s(before, stalled) == 0.05
    assert stall_quantile_s(quiet, quiet) is None
    assert stall_counts("nothing 1") == {}


@pytest.mark.parametrize(
    ("client_s", "broker_s", "all_s", "who"),
    [(0.9, 0.5, 0.6, "client"), (0.5, 0.9, 0.9, "broker"), (0.2, 0.3, 0.4, "neither")],
)
def test_the_saturated_side_is_the_limit(
    client_s: float, broker_s: float, all_s: float, who: str
) -> None:
    assert who_was_the_limit(1.0, client_s, broker_s, all_s).startswith(who)


def test_a_longer_comparison_has_so_many_times_the_messages(tmp_path: Path) -> None:
    load = Load(key="x", title="", fast=300, interpreted=60, reference=30, options={})
    quick, longer = (Stage(is_full=False, scratch=tmp_path, longer=times) for times in (1, 10))
    try:
        assert [load.messages(quick, peer) for peer in ("burrowmq", "rabbitmq")] == [100, 10]
        assert load.messages(longer, "burrowmq") == 1000
    finally:
        quick.close()
        longer.close()
