"""`kit upstream`: the embedded services over a socket."""

import argparse
from typing import Any

Arguments = argparse.Namespace


def add(commands: Any) -> None:
    """Adds the commands to a parser's."""
    upstream = commands.add_parser("upstream", help="serve the embedded upstream services over a socket")
    upstream.add_argument("--host", default="127.0.0.1")
    upstream.add_argument("--port", type=int, default=8800)
    upstream.set_defaults(run=_upstream)


def _upstream(arguments: Arguments) -> int:
    from kit.settings import Settings
    from kit.worlds.consumer.world import load_world
    from kit.worlds.service.serve import serve

    settings = Settings.read()
    print(f"serving /context and /support on http://{arguments.host}:{arguments.port}", flush=True)
    serve(load_world(settings.data), arguments.host, arguments.port, key=settings.envelope_key)
    return 0
