"""From measurements to a table: medians, ratios per round, verdicts; and two result files side by side.

Owns no state; pure functions from `Results` to text. Called by `__main__`. A ratio is formed within
each round, and the median of the ratios is shown, because rounds differ by more than brokers do.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import comb
from statistics import median

from bench.peers import PEERS
from bench.results import Results
from bench.scenarios import FIGURES, SCENARIOS, Figure
from bench.scenarios.base import DISTURBED_CORES
from bench.scenarios.headline import modes_table

OK, MISSED, NOT_RUN = "ok", "**MISSED**", "not run"
_SCALES = {"MB": 1e-6, "KB": 1e-3, "ms": 1e3, "%": 100.0}
# CPU per message swings by this much between two runs of the same program on a shared machine.
_NOISE = 0.25
# What a row may cost more, and how sure the rounds must be of it before it is called worse or no worse.
_ALLOWED = 0.03
_DOUBT = 0.05


@dataclass(frozen=True, slots=True)
class Verdict:
    """A figure, what was measured for it, and whether that is enough."""

    figure: Figure
    value: float | None
    word: str


def ratios(results: Results, scenario: str, value: str, peers: tuple[str, str]) -> list[float]:
    """`peers[0]` / `peers[1]` for each round that has both."""
    first = results.of(scenario, peers[0], value)
    second = results.of(scenario, peers[1], value)
    return [first[number] / second[number] for number in first if second.get(number)]


def over(results: Results, figure: Figure) -> dict[int, float]:
    """Round → a figure's value as a multiple of the same value of its other scenario."""
    assert figure.over is not None
    first = results.of(figure.scenario, figure.peer, figure.value)
    second = results.of(figure.over, figure.peer, figure.value)
    return {number: first[number] / second[number] for number in first if second.get(number)}


def _middle(values: Iterable[float]) -> float | None:
    found = list(values)
    return median(found) if found else None


def judge(results: Results, figure: Figure) -> Verdict:
    """Compare one figure with what it must reach; a full-size promise met by a quick run is noted as such."""
    if figure.over is not None:
        value = _middle(over(results, figure).values())
    elif figure.relative_to is not None:
        pair = (figure.peer, figure.relative_to)
        value = _middle(ratios(results, figure.scenario, figure.value, pair))
    else:
        value = _middle(results.of(figure.scenario, figure.peer, figure.value).values())
    if value is None:
        return Verdict(figure, None, NOT_RUN)
    is_met = value <= figure.must if figure.is_at_most else value >= figure.must
    word = OK if is_met else MISSED
    if is_met and figure.only_full and not results.is_full:
        word = "ok at quick size"
    return Verdict(figure, value, word)


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    scaled = value * _SCALES.get(unit, 1.0)
    digits = 0 if scaled >= 100 or scaled == int(scaled) else 1 if scaled >= 10 else 2
    if 0 < scaled < 0.1:
        digits = 4  # a part of what another needs
    return f"{scaled:,.{digits}f} {unit}".strip()


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def verdict_table(results: Results) -> str:
    """Every promise beside what was measured."""
    rows: list[list[str]] = []
    for figure in FIGURES:
        if figure.relative_to == "lavinmq" and "lavinmq" not in results.versions:
            continue  # for orientation, where somebody has it
        verdict = judge(results, figure)
        sign = "≤ " if figure.is_at_most else "≥ "
        to = f" (to {PEERS[figure.relative_to].title})" if figure.relative_to else ""
        rows.append(
            [
                figure.title,
                _amount(verdict.value, figure.unit) + (to if verdict.value is not None else ""),
                sign + _amount(figure.must, figure.unit),
                "-" if figure.reach is None else _amount(figure.reach, figure.unit),
                verdict.word,
            ]
        )
    return _table(["figure", "measured", "must", "reach for", ""], rows)


def _limits(results: Results, scenario: str, peer: str) -> str:
    found = [m.limit for m in results.measures if (m.scenario, m.peer) == (scenario, peer)]
    return found[-1] if found else ""


def _mode(results: Results, scenario: str, peer: str) -> str:
    found = [m.mode for m in results.measures if (m.scenario, m.peer) == (scenario, peer)]
    return found[-1] if found else ""


def _rate_row(results: Results, key: str, title: str, peer: str) -> list[str]:
    rate = _middle(results.of(key, peer, "rate").values())
    cpu = _middle(results.of(key, peer, "cpu_us").values())
    reference = (peer, "rabbitmq")
    is_reference = peer == "rabbitmq"
    faster = None if is_reference else _middle(ratios(results, key, "rate", reference))
    dearer = None if is_reference else _middle(ratios(results, key, "cpu_us", reference))
    return [
        title,
        PEERS[peer].title,
        "-" if rate is None else f"{rate / 1000:,.1f}",
        "-" if faster is None else f"{faster:.1f} x",
        "-" if cpu is None else f"{cpu:.2f}",
        "-" if not dearer else f"{1 / dearer:.1f} x",
        _limits(results, key, peer),
        _mode(results, key, peer),
    ]


def throughput_table(results: Results) -> str:
    """Rates, ratios to RabbitMQ, broker CPU per message and who was the limit."""
    rows: list[list[str]] = []
    for scenario in SCENARIOS:
        title = scenario.title
        for peer in PEERS:
            if results.of(scenario.key, peer, "rate"):
                rows.append(_rate_row(results, scenario.key, title, peer))
                title = ""
    head = ["scenario", "broker", "k msgs/s", "ratio", "CPU µs/msg", "CPU ratio", "limit", "mode"]
    return _table(head, rows)


def _reading(name: str, value: float) -> str:
    if name.startswith(("rss", "growth")) or name == "disk_bytes":
        return f"{name} {value / 1e6:,.1f} MB"
    return f"{name} {value:,.3f}".rstrip("0").rstrip(".")


def readings_table(results: Results) -> str:
    """Medians of everything that is not a rate: memory, start-up, latency."""
    skipped = {
        "rate",
        "cpu_us",
        "client_cpu_us",
        "messages",
        "seconds",
        "sent_rate",
        "others_cores",
    }
    rows: list[list[str]] = []
    for scenario in SCENARIOS:
        for peer in PEERS:
            measures = [m for m in results.measures if (m.scenario, m.peer) == (scenario.key, peer)]
            names = [n for n in (measures[0].values if measures else {}) if n not in skipped]
            if scenario.key == "command":
                names = ["seconds"]
            cells = [
                _reading(name, median(results.of(scenario.key, peer, name).values()))
                for name in names
                if results.of(scenario.key, peer, name)
            ]
            if cells:
                rows.append([scenario.title, PEERS[peer].title, ", ".join(cells)])
    return _table(["scenario", "broker", "readings"], rows)


def failures(results: Results) -> str:
    """Runs that failed, one line each."""
    return "\n".join(
        f"- {m.scenario} on {PEERS[m.peer].title}, round {m.round + 1}: {m.failure}"
        for m in results.measures
        if m.failure
    )


def disturbance(results: Results) -> str:
    """How many rows other programs on the machine may have spoiled."""
    shares = [m.values["others_cores"] for m in results.measures if "others_cores" in m.values]
    spoiled = sum(share > DISTURBED_CORES for share in shares)
    if not shares:
        return (
            "No load row was run, so nothing is known about other programs beside the load average."
        )
    if not spoiled:
        return f"None of {len(shares)} load runs was disturbed by other programs."
    return (
        f"**{spoiled} of {len(shares)} load runs were disturbed** by other programs (more than "
        f"{DISTURBED_CORES} cores): rates and ratios are not to be trusted, CPU per message is."
    )


def markdown(results: Results) -> str:
    """The whole report."""
    size = "full" if results.is_full else "quick"
    versions = "; ".join(f"{PEERS[p].title} {v}" for p, v in results.versions.items())
    machine = ", ".join(f"{name.replace('_', ' ')} {v}" for name, v in results.machine.items())
    parts = [
        f"{size.capitalize()} run of {results.started}, {results.rounds} interleaved round(s), medians. {versions}.",
        f"Machine: {machine}. Loopback, statistics on.",
        verdict_table(results),
        throughput_table(results),
        readings_table(results),
    ]
    parts.insert(2, disturbance(results))
    for peer in results.versions:
        found = {m.scenario: m.values for m in results.measures if m.peer == peer and m.values}
        if any(key.startswith("headline_") for key in found):
            parts.append(f"The headline's load by mode and version, {PEERS[peer].title}:")
            parts.append(modes_table(found))
    broken = failures(results)
    if broken:
        parts.append(f"Failed runs:\n\n{broken}")
    return "\n\n".join(parts) + "\n"


@dataclass(frozen=True, slots=True)
class Change:
    """What a row's CPU per message became: median ratio of the rounds, and where the true median lies (95 %).

    `low` and `high` are None below six rounds, which cannot tell.
    """

    ratio: float
    low: float | None
    high: float | None

    @property
    def surely(self) -> str:
        """Where the true change lies, with 95 %; `-` where there are too few rounds to say so."""
        if self.low is None or self.high is None:
            return "-"
        return f"{self.low - 1:+.1%} to {self.high - 1:+.1%}"

    @property
    def word(self) -> str:
        """WORSE when the rounds leave no doubt of it, `no worse` when they leave none of the opposite."""
        if self.low is None or self.high is None:
            return (
                "WORSE"
                if self.ratio > 1 + _NOISE
                else "same"
                if self.ratio > 1 - _NOISE
                else "better"
            )
        if self.low > 1 + _ALLOWED:
            return "WORSE"
        if self.high < 1:
            return "better"
        return "no worse" if self.high <= 1 + _ALLOWED else "unsettled"


def round_ratios(
    before: dict[tuple[int, int], float], after: dict[tuple[int, int], float]
) -> list[float]:
    """What each round says of a value, by (round, turn): the median ratio of its turns, each beside its neighbour."""
    found: dict[int, list[float]] = {}
    for turn, value in after.items():
        if before.get(turn):
            found.setdefault(turn[0], []).append(value / before[turn])
    return [median(ratios) for ratios in found.values()]


def change(ratios: Iterable[float]) -> Change | None:
    """What became of a value, given what each round says; None without a round.

    The interval is that of the sign test: it asks nothing of how the noise is distributed.
    """
    pairs = sorted(ratios)
    if not pairs:
        return None
    rank, chance = 0, 0.5 ** len(pairs)
    while chance <= _DOUBT / 2:
        rank += 1
        chance += comb(len(pairs), rank) * 0.5 ** len(pairs)
    if rank == 0:
        return Change(median(pairs), None, None)
    return Change(median(pairs), pairs[rank - 1], pairs[-rank])


def compare(old: Results, new: Results) -> str:
    """CPU per message and rate of two result files; CPU is the regression metric."""
    rows: list[list[str]] = []
    for scenario in SCENARIOS:
        for peer in PEERS:
            before, after = (each.of(scenario.key, peer, "cpu_us") for each in (old, new))
            turns = (each.by_turn(scenario.key, peer, "cpu_us") for each in (old, new))
            found = change(round_ratios(*turns))
            if found is None:
                continue
            rate_before, rate_after = (
                _middle(each.of(scenario.key, peer, "rate").values()) or 0.0 for each in (old, new)
            )
            rows.append(
                [
                    scenario.key,
                    PEERS[peer].title,
                    f"{median(before.values()):.3f} → {median(after.values()):.3f}",
                    f"{found.ratio - 1:+.1%}",
                    found.surely,
                    f"{rate_before / 1000:,.0f} → {rate_after / 1000:,.0f}",
                    found.word,
                ]
            )
    head = ["scenario", "broker", "CPU µs/msg", "change", "surely (95 %)", "k msgs/s", ""]
    return _table(head, rows) + "\n"


def regressions(old: Results, new: Results) -> int:
    """Number of rows that cost more CPU than noise explains."""
    return compare(old, new).count("| WORSE |")
