"""`python -m kit`, and the command `subagent-kit`."""

import gc
import os
import sys

from kit.cli import main as run


def main() -> int:
    """Runs one command."""
    # The stand-in multiplies many small matrices: with a thread for each core they take twice the processor time and
    # end no sooner. NumPy reads this once, when it is imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    gc.set_threshold(
        50_000
    )  # what imports make lives on, and looking through it again and again is a fifth of a command's start
    return run()


if __name__ == "__main__":
    sys.exit(main())
