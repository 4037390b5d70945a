"""The services of the consumer world, in this process: the context service and the support service over one World."""

from functools import lru_cache
from pathlib import Path

from starlette.applications import Starlette

from kit.worlds.consumer.enrichers import catalogue
from kit.worlds.consumer.support_faults import lines_by_header
from kit.worlds.consumer.support_service import support_app
from kit.worlds.consumer.world import World, load_world
from kit.worlds.service.context_service import context_app
from kit.worlds.service.faults import by_header


def world_at(folder: Path) -> World:
    """The world in a folder, read once as long as its files stay the same. Raises DataError."""
    meta = folder / "meta.json"
    return _world(folder, meta.stat().st_mtime_ns) if meta.exists() else load_world(folder)


@lru_cache(maxsize=2)
def _world(folder: Path, _: int) -> World:
    return load_world(folder)


def context_service(world: World, pace: float, key: str | None = None) -> Starlette:
    """The context service; a request that asks for a fault gets it. With a `key` it signs its envelopes."""
    return context_app(catalogue(world), latency=pace, faults=by_header, key=key)


def support_service(world: World, pace: float) -> Starlette:
    """The support service; a request that asks for a fault gets it."""
    return support_app(world, pace=pace, faults=lines_by_header)
