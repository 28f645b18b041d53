"""Time as the machine has it, under the names of the standard module, for which it is imported as `time`.

A broker may run inside somebody's test suite. Libraries that freeze time there (freezegun) put functions of their own
into the module `time` and wherever they find one of its functions; a disk thread or a turn that waited by those would
wait for ever. They leave the clocks of the operating system alone, which is what this asks. Owns no state.
"""

from __future__ import annotations

import time as standard
from functools import partial

monotonic = partial(standard.clock_gettime, standard.CLOCK_MONOTONIC)
monotonic_ns = partial(standard.clock_gettime_ns, standard.CLOCK_MONOTONIC)
perf_counter = monotonic
time = partial(standard.clock_gettime, standard.CLOCK_REALTIME)
time_ns = partial(standard.clock_gettime_ns, standard.CLOCK_REALTIME)
sleep = standard.sleep
