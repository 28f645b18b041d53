"""`python -m burrowmq`: the same as `burrowmq-server`. Owns no state."""

from __future__ import annotations

import sys

from burrowmq.broker.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
