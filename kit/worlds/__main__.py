"""`python -m kit.worlds`: serves the embedded context service and support service over a socket."""

import argparse
import sys

from starlette.applications import Starlette
from starlette.routing import Mount

from kit.core.errors import KitError
from kit.settings import Settings
from kit.worlds.consumer.enrichers import catalogue
from kit.worlds.consumer.services import support_service, world_at
from kit.worlds.consumer.world import World
from kit.worlds.manga.enrichers import catalogue as manga_catalogue
from kit.worlds.manga.library import Library
from kit.worlds.service.clients import KEY
from kit.worlds.service.context_service import context_app
from kit.worlds.service.faults import by_header
from kit.worlds.service.serve import serve


def world_app(
    world: World, library: Library, *, latency: float = 1.0, key: str | None = None
) -> Starlette:
    """All services as one app, under /context and /support; a request that asks for a fault gets it."""
    context = context_app(
        catalogue(world), manga_catalogue(library), latency=latency, faults=by_header, key=key
    )
    return Starlette(
        routes=[
            Mount("/context", app=context),
            Mount("/support", app=support_service(world, latency)),
        ]
    )


def main() -> int:
    """Serves until interrupted. Returns 2 when the address cannot be used, or the data not be read."""
    parser = argparse.ArgumentParser(
        prog="python -m kit.worlds", description="Serve the embedded services over a socket."
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8800)
    arguments = parser.parse_args()
    settings = Settings.read()
    try:
        app = world_app(
            world_at(settings.data, settings.today),
            Library(settings.data.parent / "manga"),
            key=settings.variables.get(KEY),
        )
        print(
            f"serving /context and /support on http://{arguments.host}:{arguments.port}", flush=True
        )
        serve(app, arguments.host, arguments.port)
    except KitError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
