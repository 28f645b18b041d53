"""What is on its way between one queue and the cluster, taken from its parts. Owns no state."""

from __future__ import annotations

from burrowmq.broker.replicated.intake import Intake
from burrowmq.broker.replicated.shelf import Shelf
from burrowmq.broker.report.cluster_state import Flow
from burrowmq.cluster.window import Window


def flow_of(window: Window, intake: Intake, shelf: Shelf, now_ms: float) -> Flow:
    """That of the queue whose parts these are."""
    in_flight = window.flight_count
    return Flow(
        bursts_in_flight=int(in_flight > 0),
        unconfirmed_count=in_flight + window.waiting_count,
        stalled_count=int(window.is_stalled(now_ms)),
        asked_count=intake.asked_count,
        pulled_count=shelf.count,
        unsent_ack_count=intake.ack_count,
        burst_count=window.burst_count,
        burst_s=window.burst_ms / 1000.0,
        resent_count=window.resent_count,
        stored_count=window.stored_count,
        refused_count=window.refused_count,
    )
