"""`kit app`: serves the chat."""

import os
import sys
from argparse import Namespace
from typing import Any, NoReturn


def add(commands: Any) -> None:
    """Adds the command to a parser's."""
    app = commands.add_parser(
        "app", help="serve the chat over the deck of the working folder, else over the demo's"
    )
    app.add_argument("--port", type=int, default=8501)
    app.set_defaults(run=_app)


def _app(arguments: Namespace) -> NoReturn:
    from kit.core.extra import require
    from kit.home import HOME

    require("app", "streamlit", "altair", "pandas")
    command = [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        str(HOME / "app.py"),
        "--server.port",
        str(arguments.port),
        # Also where a folder's own .streamlit says nothing of it: Streamlit reports to its makers by default.
        "--browser.gatherUsageStats",
        "false",
    ]
    os.execv(sys.executable, command)
