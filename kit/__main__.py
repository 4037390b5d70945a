"""`python -m kit`, and the command `subagent-kit`."""

import gc
import sys

from kit.cli import main as run


def main() -> int:
    """Runs one command."""
    gc.set_threshold(
        50_000
    )  # what imports make lives on, and looking through it again and again is a fifth of a command's start
    return run()


if __name__ == "__main__":
    sys.exit(main())
