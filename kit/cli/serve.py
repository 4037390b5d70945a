"""`kit serve`: the HTTP API over the deck."""

import asyncio
import gc
import json
import signal
import socket
import sys
from argparse import Namespace
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

PORT = 8700
DRAIN = 10
"""Seconds that running turns get to end once the server is told to, whether or not somebody reads them."""


def add(commands: Any) -> None:
    """Adds the command to a parser's."""
    serve = commands.add_parser("serve", help="answer over HTTP: turns, plans, souls, memories")
    serve.add_argument("--host", default="127.0.0.1", help="where it listens (default: 127.0.0.1)")
    serve.add_argument(
        "--port", type=int, default=PORT, help=f"0 takes a free one (default: {PORT})"
    )
    serve.add_argument(
        "--pattern",
        help="how turns are orchestrated (default: plan_execute where the deck has a planner)",
    )
    serve.add_argument(
        "--turns-at-once", type=int, default=8, help="turns of a tenant that may run (default: 8)"
    )
    serve.add_argument(
        "--turns-a-minute", type=int, default=120, help="that it may begin (default: 120)"
    )
    serve.add_argument(
        "--reader-seconds",
        type=float,
        default=30.0,
        help="how long a turn goes on that nobody reads; a plan always does (default: 30)",
    )
    serve.add_argument(
        "--openapi", action="store_true", help="print the OpenAPI document, and serve nothing"
    )
    serve.set_defaults(run=_serve)


def _serve(arguments: Namespace) -> int:
    from kit.core.extra import require

    require("serve", "fastapi", "uvicorn")
    from kit.service.api import create_app

    if arguments.openapi:
        print(json.dumps(create_app().openapi(), indent=1))
        return 0
    # Before anything is opened: a port that is taken is said at once.
    with socket.create_server((arguments.host, arguments.port), backlog=1024) as listening:
        asyncio.run(_serve_on(listening, arguments))
    return 0


async def _serve_on(listening: socket.socket, arguments: Namespace) -> None:
    import uvicorn

    from kit.bench.shadow import shadow_judges
    from kit.service.api import create_app
    from kit.service.limits import Limits
    from kit.service.queued_plans import open_queued_plans
    from kit.service.service import Service
    from kit.settings import Settings
    from kit.wire import open_kit

    class Server(uvicorn.Server):
        """uvicorn raises the signal that ended it once more, which would end this process before
        its turns are stored."""

        @contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

    limits = Limits(
        turns_at_once=arguments.turns_at_once,
        turns_a_minute=arguments.turns_a_minute,
        reader_seconds=arguments.reader_seconds,
    )
    app = create_app(most_bytes=limits.most_bytes)
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_level="warning",
        # A line a request would hold the words of memory queries.
        access_log=False,
        timeout_graceful_shutdown=DRAIN,
    )
    server = Server(config)
    loop = asyncio.get_running_loop()
    last_moment = loop.time()

    def end() -> None:
        nonlocal last_moment
        last_moment = loop.time() + DRAIN
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end)
    # It listens while the kit opens: until then /ready says no.
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        settings = Settings.read()
        async with (
            open_kit(settings) as kit,
            shadow_judges(kit),
            open_queued_plans(settings) as plans,
        ):
            kit.store.open_documents()
            app.state.service = Service(kit, limits, arguments.pattern, plans)
            # What is loaded is never garbage: else a full collection holds all turns for 0.15 s.
            gc.freeze()
            host, port = listening.getsockname()[:2]
            print(f"answering on http://{host}:{port}", file=sys.stderr, flush=True)
            await serving
            # uvicorn waits for connections alone, and a turn goes on for a while without one.
            await kit.turns.drain(max(0.0, last_moment - loop.time()))
    finally:
        server.should_exit = True
        await serving
