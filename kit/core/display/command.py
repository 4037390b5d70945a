"""The command line as it was called, for every hint that names a command."""

import shlex
import sys
from pathlib import Path

from kit.core.display.distribution import NAME


def command(*words: object) -> str:
    """Returns a command of the kit as a line to paste, begun as this process was: `subagent-kit
    check`, or `python -m kit check` with a python that was called by its path; `python` where
    neither was called, as in a notebook."""
    program = Path(sys.argv[0])
    if program.name == NAME:
        return shlex.join((NAME, *map(str, words)))
    is_module = program.parts[-2:] == ("kit", "__main__.py")
    # `python` on the path may be another one, or none, so a path is repeated as a whole path.
    python = sys.executable if is_module and "/" in sys.orig_argv[0] else "python"
    return shlex.join((python, "-m", "kit", *map(str, words)))
