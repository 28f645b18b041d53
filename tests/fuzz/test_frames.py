"""Any octets give events, an AmqpError or a Disconnect, in bounded memory, and nothing else.

The live broker has its own fuzz test; this one drives the connection's state machine, so that 100,000
frames take seconds. The seed is in the test's name: a failure is repeated by running that one again.
"""

from __future__ import annotations

import resource

import pytest

from tests.fuzz.peer import run


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_ten_thousand_frames(seed: int) -> None:
    peer = run(seed, 10_000)
    assert {"PublishRun", "AckRun", "MethodReceived", "ChannelFailed", "Disconnect"} <= set(
        peer.seen
    )


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_a_hundred_thousand_frames_cost_no_memory() -> None:
    run(4, 10_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    run(5, 100_000)
    growth_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert growth_kib < 32 * 1024
