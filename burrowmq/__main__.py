"""`python -m burrowmq`: the same as `burrowmq-server`. Owns no state."""

from __future__ import annotations

import sys

from burrowmq.programs import server

if __name__ == "__main__":
    sys.exit(server())
