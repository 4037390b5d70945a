"""`python -m kit ...`: each command imports what it needs. Errors end as one sentence and exit code 2."""

import argparse
import sys
from collections.abc import Sequence

from kit.cli import app, ask, deck, doctor, forget, measure, project, soul, stored
from kit.core.errors import KitError


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; returns 0, 1 (the answer is no) or 2 (it could not be done, and stderr says why)."""
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except KitError as error:
        print(f"kit: {error}", file=sys.stderr)
    except OSError as error:
        print(f"kit: {error.strerror or error}: {error.filename or ''}".rstrip(": "), file=sys.stderr)
    except KeyboardInterrupt:
        print("kit: stopped", file=sys.stderr)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="dispatch-kit", description="Orchestrate LLM sub-agents from declarative cards.")
    commands = parser.add_subparsers(required=True, metavar="command")
    for group in (project, ask, app, deck, doctor, measure, stored, forget, soul):
        group.add(commands)
    return parser
